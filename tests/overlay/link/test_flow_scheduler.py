"""FlowScheduler: control first, shares in bytes, nobody starves, bounds."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.link.events import Flow
from overlay.link.link_io import FlowScheduler, SchedulerLimits
from tests.examples import examples

QUANTA = {Flow.CATALOG: 16 * 1024, Flow.QUERY: 32 * 1024, Flow.MESSAGE: 64 * 1024}


def frame(flow: Flow, size: int, number: int = 0) -> bytes:
    return bytes([flow]) + number.to_bytes(4, "big") + bytes(max(0, size - 5))


def test_nothing_to_send() -> None:
    assert FlowScheduler().pop() is None


def test_order_within_a_flow_is_kept() -> None:
    scheduler = FlowScheduler()
    frames = [frame(Flow.QUERY, 10, number) for number in range(50)]
    for data in frames:
        assert scheduler.push(Flow.QUERY, data)
    assert [scheduler.pop() for _ in range(51)] == [*frames, None]


def test_control_goes_before_everything() -> None:
    scheduler = FlowScheduler()
    for flow in (Flow.MESSAGE, Flow.QUERY, Flow.CATALOG):
        scheduler.push(flow, frame(flow, 10))
    first = scheduler.pop()
    assert first is not None
    assert first[0] == Flow.MESSAGE
    scheduler.push(Flow.CONTROL, frame(Flow.CONTROL, 10))
    second = scheduler.pop()
    assert second is not None
    assert second[0] == Flow.CONTROL


@pytest.mark.parametrize("sizes", [(100, 100, 100), (1000, 100, 7000), (50, 90_000, 700)])
def test_shares_are_in_bytes(sizes: tuple[int, int, int]) -> None:
    scheduler = FlowScheduler()
    size_of = dict(zip(QUANTA, sizes, strict=True))
    for flow, size in size_of.items():
        for _ in range(20_000_000 // size // 4):
            scheduler.push(flow, frame(flow, size))
    sent: Counter[int] = Counter()
    while sum(sent.values()) < 4_000_000:
        data = scheduler.pop()
        assert data is not None
        sent[data[0]] += len(data)
    total = sum(sent.values())
    for flow, quantum in QUANTA.items():
        assert sent[flow] / total == pytest.approx(quantum / sum(QUANTA.values()), abs=0.06)


def test_a_long_frame_does_not_starve_nor_does_it_starve_others() -> None:
    """A catalog frame of 1 MiB has to wait for its rounds, and everybody else goes on."""
    scheduler = FlowScheduler()
    scheduler.push(Flow.CATALOG, frame(Flow.CATALOG, 1 << 20))
    for _ in range(100_000):
        scheduler.push(Flow.MESSAGE, frame(Flow.MESSAGE, 1000))
    before = 0
    while (data := scheduler.pop()) is not None and data[0] != Flow.CATALOG:
        before += len(data)
    assert data is not None
    rounds = (1 << 20) / QUANTA[Flow.CATALOG] + 1
    assert (rounds - 3) * QUANTA[Flow.MESSAGE] <= before <= rounds * QUANTA[Flow.MESSAGE]


def test_an_idle_flow_saves_nothing_up() -> None:
    scheduler = FlowScheduler()
    for _ in range(1000):
        scheduler.push(Flow.CATALOG, frame(Flow.CATALOG, 10))
        scheduler.pop()
    for flow in (Flow.MESSAGE, Flow.CATALOG):
        for _ in range(2000):
            scheduler.push(flow, frame(flow, 1000))
    run = 0
    for _ in range(400):
        data = scheduler.pop()
        assert data is not None
        run = run + 1 if data[0] == Flow.CATALOG else 0
        assert run <= QUANTA[Flow.CATALOG] // 1000 + 1


def test_a_full_queue_says_so() -> None:
    limits = SchedulerLimits(control_bytes_max=100, flow_bytes_max=50)
    scheduler = FlowScheduler(limits)
    assert scheduler.push(Flow.MESSAGE, bytes(80))  # one frame always fits
    assert not scheduler.push(Flow.MESSAGE, bytes(1))
    assert scheduler.push(Flow.QUERY, bytes(50))
    assert scheduler.push(Flow.CONTROL, bytes(60))
    assert not scheduler.push(Flow.CONTROL, bytes(41))
    assert scheduler.push(Flow.CONTROL, bytes(40))
    assert len(scheduler) == 4
    queue = scheduler._queues[Flow.MESSAGE]
    assert (len(queue.frames), queue.bytes) == (1, 80)


def test_a_quantum_is_positive() -> None:
    with pytest.raises(ValueError, match="quantum"):
        FlowScheduler(SchedulerLimits(query_quantum_bytes=0))


@given(st.lists(st.tuples(st.sampled_from(Flow), st.integers(5, 200_000)) | st.none(), max_size=60))
@examples(200)
def test_everything_comes_out_once_and_in_order(steps: list[tuple[Flow, int] | None]) -> None:
    scheduler = FlowScheduler()
    waiting: dict[int, list[bytes]] = {flow: [] for flow in Flow}
    for number, step in enumerate([*steps, *[None] * 61]):
        if step is not None:
            data = frame(step[0], step[1], number)
            scheduler.push(step[0], data)
            waiting[step[0]].append(data)
            continue
        out = scheduler.pop()
        if out is None:
            assert not any(waiting.values())
        else:
            assert out[0] == Flow.CONTROL or not waiting[Flow.CONTROL]
            assert waiting[out[0]].pop(0) == out
    assert len(scheduler) == 0
