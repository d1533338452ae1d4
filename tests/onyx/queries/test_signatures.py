"""A cycle provider takes a query plan once, in its time, as it was signed and from whom it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from time import time

import pytest

from onyx.identity.authority import Authority
from onyx.identity.signing import SignatureCheck, Signer
from onyx.queries import signatures
from onyx.queries.signatures import GOOD_SECONDS, Gate, Order, question, seal, ticket
from overlay.link.principal import Principal
from registration.queries.providers import CLIENT, CycleProvider
from registration.queries.query_plan import Figures, Fragment
from registration.queries.refusals import QueryRefused

FRAGMENT = Fragment(0, CycleProvider("u:A", "A"), (), (), (), "SELECT 1 AS n", Figures(rows=1))
ANN = Principal("user", "ann")


class Place:
    """A network's authority, credentials of Ann, and the gate of a provider."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority.make(folder / "identity", "market")
        self.signer = Signer(self.credentials(ANN))
        revoked = self.authority.revoked_file
        self.gate = Gate(SignatureCheck.by(self.credentials(Principal("provider", "A")), revoked))

    def credentials(self, principal: Principal, days: float = 1.0) -> Path:
        file = self.folder / f"{principal.name}.pem"
        file.write_bytes(self.authority.issue(principal, days))
        return file

    def refusal(self, sealed: bytes) -> str:
        with pytest.raises(QueryRefused) as caught:
            self.gate.order(sealed)
        assert caught.value.code == "bad-signature"
        return caught.value.reason


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def order(issued: float | None = None) -> Order:
    made = Order((FRAGMENT,), CLIENT)
    return made if issued is None else replace(made, issued=issued)


def test_a_plan_is_its_signers_and_good_once(place: Place) -> None:
    sealed = seal(order(), place.signer)
    found, principal = place.gate.order(sealed)
    assert (found.fragments, principal) == ((FRAGMENT,), ANN)
    assert "a second time" in place.refusal(sealed)


def test_a_plan_is_good_for_five_minutes(place: Place) -> None:
    assert "s ago, 300 are allowed" in place.refusal(
        seal(order(time() - GOOD_SECONDS - 1), place.signer)
    )
    assert "allowed" in place.refusal(seal(order(time() + 60), place.signer))
    assert "before this cycle provider began" in place.refusal(
        seal(order(time() - 60), place.signer)
    )


@pytest.mark.parametrize("seed", range(2))
def test_no_byte_of_a_plan_can_be_altered(place: Place, seed: int) -> None:
    random, sealed = Random(seed), seal(order(), place.signer)
    for _ in range(200):
        at = random.randrange(len(sealed))
        changed = sealed[:at] + bytes([sealed[at] ^ 1 << random.randrange(8)]) + sealed[at + 1 :]
        try:
            found, principal = place.gate.order(changed)
        except QueryRefused as refused:
            assert refused.code == "bad-signature"
        else:  # a bit of base64's padding, or of a line end of the certificate, says nothing
            assert (found.fragments, principal) == ((FRAGMENT,), ANN)
            place.gate = Gate(place.gate._check)


def test_a_plan_of_nobody_is_anonymous_and_of_strangers_refused(
    place: Place, tmp_path: Path
) -> None:
    assert place.gate.order(seal(order(), None))[1] is None
    (tmp_path / "elsewhere").mkdir()
    stranger = Place(tmp_path / "elsewhere").signer
    assert "of another authority" in place.refusal(seal(order(), stranger))


def test_a_certificate_that_is_revoked_later_counts_from_then_on(place: Place) -> None:
    assert place.gate.order(seal(order(), place.signer))[1] == ANN
    (serial,) = (one.serial for one in place.authority.issued() if one.principal == ANN)
    place.authority.revoke({serial})
    assert "is revoked" in place.refusal(seal(order(), place.signer))
    place.authority.revoked_file.write_text("no number\n")
    assert "no revoked certificates" in place.refusal(seal(order(), place.signer))
    place.authority.revoked_file.unlink()
    assert "is revoked" in place.refusal(seal(order(), place.signer))


def test_a_certificate_that_is_over_signs_nothing(place: Place) -> None:
    late = Signer(place.credentials(Principal("user", "ben"), days=-1 / 1440))
    assert "is over" in place.refusal(seal(order(), late))


def test_a_ticket_is_no_plan_and_a_plan_no_ticket(place: Place) -> None:
    assert place.gate.ticket(ticket("q", 3, place.signer)) == ("q", 3, ANN)
    place.refusal(ticket("q", 3, place.signer))
    with pytest.raises(QueryRefused, match="no query plan"):
        place.gate.ticket(seal(order(), place.signer))


def test_a_question_is_of_its_signer_to_one_provider(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = question("u:A", place.signer)
    assert place.gate.question(asked, "u:A") == ANN
    assert place.gate.question(question("u:A", None), "u:A") is None
    refused = [(asked, "u:B", "the question is to u:A"), (ticket("u:A", 3, None), "u:A", "s ago")]
    refused.append((ticket("u:A", int(time()), place.signer), "u:A", "of another text"))
    for sealed, site, reason in refused:
        with pytest.raises(QueryRefused, match=reason):
            place.gate.question(sealed, site)
    monkeypatch.setattr(signatures, "time", lambda: time() + GOOD_SECONDS + 1)
    with pytest.raises(QueryRefused, match="301 s ago, 300 are allowed"):
        place.gate.question(asked, "u:A")
