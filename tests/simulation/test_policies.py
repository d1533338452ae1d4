"""Users who are away for long, with policies for what waits: what comes, comes once and in order,
and of the rest they are told how many are missing, whoever dies meanwhile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from msgspec.structs import asdict

from onyx.broker.broker_core import BrokerCore
from onyx.broker.deliveries.policies import Policies
from overlay.delivery_policy import DISCONNECT, DROP_NEWEST, DROP_OLDEST, USUAL, DeliveryPolicy
from overlay.link.core import Core, Rows
from overlay.link.core_context import Surroundings
from overlay.link.frame import Frame
from overlay.link.frames import Deliveries, Detached, Missed, contents, cut
from overlay.link.limits import LinkLimits
from tests.simulation.crashing_ends import DyingSubscriber
from tests.simulation.scenario import Scenario
from tests.simulation.seeds import batch, seeds, until_seen

SEEDS = seeds(40)
RUNS_PER_TEST = 20
MESSAGE = b'<m a="1"/>'
CALENDAR = 1_800_000_000.0
NOT_KEPT = re.compile(rb"(at least )?(\d+) results? (?:was|were) not kept")


@dataclass
class UserDisk:
    """What a user has done by now; ``missed`` for good, ``left_out`` as the newest (or more, if not
    ``is_exact``), and how often they were sent away."""

    policy: DeliveryPolicy
    position: int = 0
    got: list[tuple[str, int]] = field(default_factory=list)
    missed: int = 0
    left_out: int = 0
    is_exact: bool = True
    sent_away: int = 0

    @property
    def accounted(self) -> int:
        return len(self.got) + self.missed + self.left_out


class PolicedUser(DyingSubscriber):
    def __init__(
        self, disk: UserDisk, profile: str, host: str, instance: str, limits: LinkLimits
    ) -> None:
        super().__init__(disk.position, profile, host, instance, limits)
        self._disk = disk
        self._profile = profile

    def work(self, frame: Deliveries, number: int) -> None:
        if contents(frame.lengths, frame.payload).results:
            self._disk.got.append((frame.source, frame.number))
        else:
            found = NOT_KEPT.match(cut(frame.lengths, frame.payload)[1])
            assert found is not None
            self._disk.left_out += int(found[2])
            self._disk.is_exact &= not found[1]
        self._disk.position = number

    def missed(self, frame: Missed, lost: int) -> None:
        self._disk.missed += lost
        self._disk.position = max(self._disk.position, frame.through)

    def detached(self, frame: Detached) -> Iterable[Frame]:
        """They come again."""
        if self._subscription.detached(frame) is None:
            return ()
        self._disk.sent_away += frame.code == "too-slow"
        self._subscription.attach(self._profile, self._disk.position)
        return self._subscription.attachments()


class Policed(Scenario):
    """All want all messages."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.users: dict[str, UserDisk] = {}
        self.hosts_of: dict[str, str] = {}

    def new_broker(self, broker: str, instance: str, rows: Rows) -> Core:
        """With a calendar."""
        epoch = self.net.nodes[f"broker/{broker}"].epoch
        around = Surroundings(self._clock(), wall=lambda: CALENDAR + self.net.now, epoch=epoch)
        return BrokerCore(self.topology, broker, instance, rows, around)

    def add_user(self, policy: DeliveryPolicy) -> None:
        location = [self.random.uniform(-90, 90), self.random.uniform(-180, 180)]
        said = asdict(policy)
        result = self.ask(
            *(self.registrar, "profile.add"), text="/m", location=location, wait=True, policy=said
        )
        profile, host = str(result["profile"]), str(result["host"])
        disk = self.users[profile] = UserDisk(policy)
        self.hosts_of[profile] = host
        self.net.add(
            f"subscriber/{profile}",
            lambda rows, instance: PolicedUser(disk, profile, host, instance, self.limits),
            [f"broker/{host}"],
        )

    def random_policy(self) -> DeliveryPolicy:
        when_full = self.random.choice([DROP_OLDEST, DROP_NEWEST, DISCONNECT])
        most = self.random.choice([0, 1, 3, 10])
        return DeliveryPolicy(when_full, 0, most, self.random.choice([0, 0, 2, 5]))

    def send_away(self) -> None:
        profile = self.random.choice(sorted(self.users))
        self.net.crash(self.net.nodes[f"subscriber/{profile}"], self.random.uniform(0.5, 15.0))

    def too_many(self) -> list[str]:
        """Profiles of which more waits than their policy allows; beside the bound there is one
        delivery that says what was left out."""
        found = []
        for profile, host in self.hosts_of.items():
            core = self.net.nodes[f"broker/{host}"].core
            if isinstance(core, BrokerCore):
                box, most = (
                    core.mailboxes._boxes.get(profile),
                    self.users[profile].policy.deliveries_max,
                )
                if box is not None and most and box.count > most + 1:
                    found.append(f"{box.count} wait for {profile}, {self.users[profile].policy}")
        return found

    def is_done(self) -> bool:
        """Whether all has come to where nobody drops it, and nothing waits anywhere."""
        if any(len(d.got) < len(self.published) for d in self.users.values() if d.policy == USUAL):
            return False
        cores = [self.net.nodes[f"broker/{broker}"].core for broker in self.topology.broker_ids]
        mailboxes = [core.mailboxes for core in cores if isinstance(core, BrokerCore)]
        return len(mailboxes) == len(cores) and not any(
            each.counted.waiting or each.policies.untold for each in mailboxes
        )


def run(seed: int) -> Policed:
    scenario = Policed(seed, brokers=1 + seed % 4)
    random, net = scenario.random, scenario.net
    scenario.add_user(USUAL)
    for _ in range(4):
        scenario.add_user(scenario.random_policy())
    sources = [scenario.register_source() for _ in range(2)]
    net.disturb(
        cut_every=random.choice([0.5, 2.0, 10.0]),
        crash_every=random.choice([1.0, 3.0, 1000.0]),
        may_crash=scenario.server_peers,
    )
    for _ in range(60):
        action = random.random()
        if action < 0.8:
            scenario.publish(random.choice(sources), MESSAGE)
        elif action < 0.95:
            scenario.send_away()
        net.run_until(lambda: False, random.uniform(0, 0.4))
        assert scenario.too_many() == [], f"seed {seed}"
    net.faulty = False
    scenario.wait(scenario.is_done, f"not all is accounted for: {scenario.users}")
    net.run_until(lambda: False, 20.0)
    return scenario


@pytest.mark.parametrize("first", SEEDS[::RUNS_PER_TEST])
def test_what_comes_and_what_is_missing_is_all_there_was(first: int) -> None:
    """In more seeds if something rare has not happened."""
    rare = DROP_OLDEST, DROP_NEWEST, DISCONNECT, "expired"
    seen: Counter[str] = Counter()
    for seed in until_seen(batch(SEEDS, first, RUNS_PER_TEST), seen, rare):
        scenario = run(seed)
        for disk in scenario.users.values():
            said = f"seed {seed}: {disk}"
            # What says how many were left out may be too old itself.
            is_exact = disk.is_exact and not (disk.policy.ttl_s and disk.policy.is_bounded)
            if is_exact or disk.policy.when_full != DROP_NEWEST:
                assert disk.accounted == len(scenario.published), said
            elif disk.accounted < len(scenario.published):
                assert disk.left_out or disk.missed, said
            for source in scenario.sources:
                numbers = [number for name, number in disk.got if name == source]
                assert numbers == sorted(set(numbers)), said
            if disk.policy == USUAL:
                assert len(disk.got) == len(scenario.published), said
            if disk.policy.when_full != DROP_NEWEST:
                assert not disk.left_out, said
            if not disk.policy.ttl_s and disk.policy.when_full == DROP_NEWEST:
                assert not disk.missed, said
            seen[disk.policy.when_full] += disk.left_out + disk.missed
            seen["expired"] += (
                disk.missed if disk.policy.ttl_s and not disk.policy.deliveries_max else 0
            )
            seen["sent away"] += disk.sent_away
    assert all(seen[what] for what in rare), seen


def test_a_policy_that_is_not_kept_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Policies, "check", lambda self, boxes: 0)
    with pytest.raises(AssertionError, match="wait for"):
        for seed in range(1, 20):
            run(seed)
