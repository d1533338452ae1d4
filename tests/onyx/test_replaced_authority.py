"""An authority is replaced in three steps, each of which may come to a process late: files of one
step go together with those of the step before it and behind it, and with no others."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from onyx.cli.main import main
from onyx.errors import NotAuthenticated, UsageError
from onyx.identity.authority import Authority
from onyx.identity.signing import SignatureCheck, Signer
from overlay.link.credentials import Credentials
from overlay.link.principal import Principal

ANN, B1 = Principal("user", "ann"), Principal("broker", "B1")
STEPS = ("before", "prepare", "replace", "forget")


class Replaced:
    """The credentials of ann and B1 as they were at each step, and its authority at the end."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = Authority.make(directory / "identity", "net")
        self.authority.keep(B1)
        self._keep("before")
        for step in STEPS[1:]:
            assert main(["cert", "authority", step, "--data", str(directory)]) == 0
            self.authority = Authority(directory / "identity")
            self._keep(step)

    def file(self, who: Principal, step: str) -> Path:
        return self.directory / f"{who.name}-{step}.pem"

    def _keep(self, step: str) -> None:
        self.file(B1, step).write_bytes(self.authority.file_of(B1).read_bytes())
        self.file(ANN, step).write_bytes(self.authority.issue(ANN))


@pytest.fixture(scope="module")
def replaced(tmp_path_factory: pytest.TempPathFactory) -> Replaced:
    return Replaced(tmp_path_factory.mktemp("replaced"))


def meet(client: Credentials, node: Credentials) -> tuple[Principal, Principal]:
    """The node as the client knows it, and the other way round; ssl.SSLError."""
    shows, sees = client.channel(server_side=False), node.channel(server_side=True)
    data = b""
    while not shows.shake(data):
        sees.shake(shows.to_send())
        data = sees.to_send()
    sees.shake(shows.to_send())
    return client.principal_of(shows.certificate()), node.principal_of(sees.certificate())


def goes(does: Callable[[], object]) -> bool:
    try:
        does()
    except (ssl.SSLError, NotAuthenticated):
        return False
    return True


@pytest.mark.parametrize("at", range(len(STEPS)), ids=STEPS)
@pytest.mark.parametrize("node_at", range(len(STEPS)), ids=[f"B1-{step}" for step in STEPS])
def test_neighbouring_steps_go_together(replaced: Replaced, at: int, node_at: int) -> None:
    ann, b1 = replaced.file(ANN, STEPS[at]), replaced.file(B1, STEPS[node_at])
    is_near = abs(at - node_at) <= 1
    assert goes(lambda: meet(Credentials(ann), Credentials(b1))) == is_near
    if is_near:
        assert meet(Credentials(ann), Credentials(b1)) == (B1, ANN)
    check = SignatureCheck.by(b1)
    knows = STEPS[node_at] in ("prepare", "replace") or (at < 2) == (node_at < 2)
    assert goes(lambda: check.principal(b"text", Signer(ann).sign(b"text"))) == knows


def test_the_steps_come_in_order(tmp_path: Path) -> None:
    authority = Authority.make(tmp_path, "net")
    for step in (authority.replace, authority.forget):
        with pytest.raises(UsageError, match="onyx cert authority"):
            step()
    authority.prepare()
    with pytest.raises(UsageError, match="already"):
        authority.prepare()
    authority.replace()
    with pytest.raises(UsageError, match="already"):
        authority.prepare()
    authority.forget()
    authority.prepare()


def test_an_authority_that_died_while_it_was_replaced_is_the_next_one(tmp_path: Path) -> None:
    authority = Authority.make(tmp_path, "net")
    authority.prepare()
    (tmp_path / "former.pem").write_bytes((tmp_path / "authority.pem").read_bytes())
    (tmp_path / "next.key").replace(tmp_path / "authority.key")
    found = Authority(tmp_path)
    file = found.keep(B1)
    assert meet(Credentials(found.keep(ANN)), Credentials(file)) == (B1, ANN)
    found.forget()
    assert Credentials(found.keep(B1, anew=True)).principal == B1
