"""A cycle provider goes on with a new certificate, at its port, while no query is at work."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509
from pyarrow import flight

from onyx.queries.identity import Identity
from onyx.queries.provider_process import CycleService, Peers, Serving, _Query
from onyx.queries.signatures import Gate, Order
from overlay.link.principal import Principal
from registration.queries.providers import CLIENT
from tests.onyx.queries.one_process import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def service(place: Place) -> CycleService:
    identity = Identity.of(place.credentials("provider", "A"))
    own = next(each for each in place.market.cycle_providers.values() if each.name == "A")

    def session() -> None:
        raise AssertionError("no query starts Spark here")

    peers = Peers(place.market, identity)
    return CycleService(own, place.market, session, Gate(identity.check()), peers, lambda *_: {})


def serials(place: Place, served: Serving) -> set[int]:
    """Of the certificates that TLS shows, and for which secrets are sealed."""
    shown = ssl.get_server_certificate(("127.0.0.1", served.port))
    identity = Identity.of(place.credentials("user", "ann"))
    name = Principal("provider", "A").host_name(identity.network)
    with flight.connect(
        f"grpc+tls://127.0.0.1:{served.port}",
        tls_root_certs=identity.authority,
        override_hostname=name,
    ) as client:
        (holder,) = client.do_action(flight.Action("holder", b""))
    found = (shown.encode(), holder.body.to_pybytes())
    return {x509.load_pem_x509_certificate(each).serial_number for each in found}


def test_a_new_file_is_taken_when_the_last_query_has_ended(
    place: Place, service: CycleService
) -> None:
    file = place.credentials("provider", "A")
    with Serving(service, "127.0.0.1", 0, file) as served:
        former, port = serials(place, served), served.port
        file.write_bytes(place.authority.issue(Principal("provider", "A")))
        service._queries["q"] = _Query(Order((), CLIENT, id="q"), None, [])
        served.look_after()
        assert serials(place, served) == former
        service.end("q")
        served.look_after()
        new = [one.serial for one in place.authority.issued() if str(one.principal) == "provider/A"]
        assert served.port == port
        assert former == {new[0]} and serials(place, served) == {new[1]}


def test_credentials_of_somebody_else_are_not_taken(
    place: Place, service: CycleService, caplog: pytest.LogCaptureFixture
) -> None:
    file = place.credentials("provider", "A")
    with Serving(service, "127.0.0.1", 0, file) as served:
        former = serials(place, served)
        for wrong in (place.credentials("provider", "B").read_text(), "no credentials"):
            file.write_text(wrong)
            for _ in range(2):
                served.look_after()
            assert serials(place, served) == former
    first, second = caplog.messages
    assert "are not of this cycle provider" in first and "no credentials" in second
