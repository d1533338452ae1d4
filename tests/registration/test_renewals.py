"""Certificates are renewed for those who show one, once half of its life is over, and for nobody
else; what signs is asked, and has answered, by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from overlay.answers import AuditPage
from overlay.link.core_context import Surroundings
from overlay.link.events import DeskAnswered
from overlay.link.frames import Response
from overlay.link.principal import Principal
from overlay.link.validity import DAY, Certificate
from registration.registration_core import RegistrationCore
from registration.renewal_questions import RenewalWanted, Renewed
from registration.renewals import AGAIN_SECONDS, AT_ONCE_MAX
from tests.beside import Peer
from tests.registration.test_registration_core import Setting, refused

LIFE = 90 * DAY
NEW = Renewed("the new one, and the authority's")


class Renewing(Setting):
    """``signs``: beside the authority."""

    def __init__(self, *, signs: bool = True) -> None:
        self.signs = signs
        super().__init__()
        self.wall = 0.6 * LIFE

    def _new_core(self, instance: str, rows: Iterable[tuple[str, str, bytes]]) -> RegistrationCore:
        core = self.topology, self.identity, instance, rows
        return RegistrationCore(
            *core, Surroundings(wall=lambda: self.wall), signs=getattr(self, "signs", True)
        )

    def shows(self, who: str) -> Peer:
        """Connected by a certificate of the first LIFE seconds of the epoch."""
        principal = Principal.parse(who)
        shown = Certificate(principal.uri("figure4"), 7, 0.0, LIFE)
        peer = self.beside.peer("client", who.replace("/", "-"), principal=who)
        peer.disconnect()
        peer.principal = replace(principal, certificate=shown)
        return peer.connect()

    def signed(self) -> list[RenewalWanted]:
        """What the process with the key is asked."""
        questions = [asked.question for asked in self.beside.desk_asked]
        assert all(isinstance(each, RenewalWanted) for each in questions)
        return questions  # type: ignore[return-value]

    def answer(self, found: Renewed = NEW) -> None:
        asked, self.beside.desk_asked = self.beside.desk_asked, []
        for each in asked:
            self.beside.tell(DeskAnswered(each.key, found))

    def audit(self) -> list[tuple[str, str, str]]:
        listed = self.client.ask("audit.list")
        assert listed is not None
        entries = AuditPage.of(listed.result).entries
        return [(one.who, one.what, one.detail) for one in entries]


def ask(peer: Peer, request: bytes = b"csr") -> Response | None:
    return peer.ask("cert.renew", request=request)


@pytest.mark.parametrize(
    "who", ["broker/B1", "registration/R", "user/ann", "source/s1", "provider/A", "operator/root"]
)
def test_whoever_shows_a_certificate_gets_another_for_themselves(who: str) -> None:
    setting = Renewing()
    peer = setting.shows(who)
    assert ask(peer) is None, "it is answered when it is signed"
    (wanted,) = setting.signed()
    assert (wanted.shown.uri, wanted.request) == (f"onyx://figure4/{who}", b"csr")
    setting.answer()
    (answer,) = peer.all(Response)
    assert answer.ok and answer.result["certificates"] == NEW.certificates
    assert (who, "cert.renew", f"of {who}") in setting.audit()


def test_a_token_is_no_certificate_and_without_tls_there_is_none() -> None:
    setting = Renewing()
    by_token = setting.beside.peer("client", "ann", principal="user/ann")
    for peer in (by_token, setting.client):
        assert refused(ask(peer)) == "no-certificate"
    assert setting.signed() == []


def test_a_service_away_from_the_authority_says_so() -> None:
    setting = Renewing(signs=False)
    answer = ask(setting.shows("user/ann"))
    assert answer is not None and refused(answer) == "no-authority"
    assert "onyx cert issue user/ann --out FILE" in str(answer.result["message"])
    assert setting.signed() == []


@pytest.mark.parametrize(("at", "code"), [(0.0, "too-soon"), (0.499, "too-soon"), (0.501, "")])
def test_half_of_the_life_is_over_first(at: float, code: str) -> None:
    setting = Renewing()
    setting.wall = at * LIFE
    answer = ask(setting.shows("user/ann"))
    assert ("" if answer is None else refused(answer)) == code


def test_a_request_that_comes_again_makes_one_certificate() -> None:
    setting = Renewing()
    peer = setting.shows("user/ann")
    ask(peer)
    ask(peer)
    assert len(setting.signed()) == 1
    setting.answer()
    again = ask(peer)
    assert again is not None and again.ok
    assert setting.signed() == []


def test_another_key_is_not_signed_for_a_while() -> None:
    setting = Renewing()
    ann, bob = setting.shows("user/ann"), setting.shows("user/bob")
    ask(ann, b"first")
    setting.answer()
    assert refused(ask(ann, b"second")) == "too-soon"
    assert ask(bob, b"second") is None
    setting.wall += AGAIN_SECONDS
    assert ask(ann, b"second") is None


def test_so_many_are_signed_at_once() -> None:
    setting = Renewing()
    for number in range(AT_ONCE_MAX):
        assert ask(setting.shows(f"user/u{number}")) is None
    late = setting.shows("user/late")
    assert refused(ask(late)) == "busy"
    setting.answer()
    assert ask(late) is None


def test_one_that_cannot_be_signed_may_be_asked_for_again() -> None:
    setting = Renewing()
    peer = setting.shows("user/ann")
    ask(peer, b"no request")
    setting.answer(Renewed(failed="no request for a certificate"))
    (answer,) = peer.all(Response)
    assert refused(answer) == "not-renewed"
    assert ask(peer, b"a request") is None


def test_an_answer_for_one_who_has_gone_is_of_no_harm() -> None:
    setting = Renewing()
    peer = setting.shows("user/ann")
    ask(peer)
    peer.disconnect()
    setting.answer()
    peer.connect()
    again = ask(peer)
    assert again is not None and again.ok, "the same request has the same answer"
