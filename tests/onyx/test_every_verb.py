"""Every verb of a broker and of a registration service, asked with each wrong value of each of its
arguments, and with right ones, as each role: no process fails, and none gives more than the role
may."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec import to_builtins

from onyx.broker.broker_core import BrokerCore
from overlay import verbs
from overlay.access import ROLES, Right
from overlay.link.core import Core
from overlay.link.frames import Response
from registration.registration_core import RegistrationCore
from tests.beside import Beside
from tests.onyx.broker.test_broker_core import FIGURE4
from tests.overlay.test_verbs import WRONG, fields_of, sample

CORES: dict[str, Callable[[], Core]] = {
    "broker": lambda: BrokerCore(FIGURE4, "B4", "run"),
    "registration": lambda: RegistrationCore(FIGURE4, FIGURE4.registration[0].id, "run"),
}
ASKED = [(name, verb) for name, make in CORES.items() for verb in sorted(make().verbs)]
ASKERS: dict[str, tuple[str, ...]] = {
    "user/ann": ("own",),
    "source/wire": ("publish",),
    "operator/root": tuple(ROLES),
    "broker/B1": (),  # as it asks for its certificate
}


def arguments_of(kind: type[verbs.Asked]) -> list[dict[str, Any]]:
    """Right ones, and each of these with one wrong value."""
    right = {
        name: to_builtins(sample(hint), builtin_types=(bytes,)) for name, hint in fields_of(kind)
    }
    return [right, *({**right, name: wrong} for name in right for wrong in WRONG)]


def code_of(answer: Response | None) -> str:
    """Of the refusal; "" where it is answered, now or later."""
    return "" if answer is None or answer.ok else str(answer.result["code"])


def but_for_the_audit(rows: Mapping[tuple[str, str], bytes]) -> dict[tuple[str, str], bytes]:
    """A refusal is noted, and a broker tells the registration service of it."""
    return {
        (space, key): value
        for (space, key), value in rows.items()
        if not space.startswith("audit") and b"audited" not in value
    }


@pytest.mark.parametrize(("process", "verb"), ASKED, ids=lambda each: each)
def test_a_verb_gives_what_the_role_may_and_nothing_else(process: str, verb: str) -> None:
    core = CORES[process]()
    beside = Beside(f"{process}/{core.identity}", core)
    kind = core.verbs[verb].asked
    for asker, roles in ASKERS.items():
        may = {Right.KNOWN}.union(*(ROLES[role] for role in roles))
        for number, arguments in enumerate(arguments_of(kind)):
            peer = beside.peer("client", f"{asker}-{number}".replace("/", "-"), principal=asker)
            before = but_for_the_audit(beside.rows)
            code = code_of(peer.ask(verb, **arguments))
            said = f"{asker}: {verb} {arguments}: {code}"
            assert code != "internal" and not peer.error, said
            if kind.right not in may:
                assert but_for_the_audit(beside.rows) == before, said
                if core.verbs[verb].about is None:
                    assert code == "not-authorised", said


def test_wrong_values_are_among_them() -> None:
    """The check above would find a value that a verb takes and fails at."""
    assert len(ASKED) > 55
    counts = [len(arguments_of(kind)) for kind in verbs.TABLE if kind.__struct_fields__]
    assert min(counts) == 1 + len(WRONG)
