"""A gateway that other machines reach: TLS and tokens, of one that runs in the test."""

from __future__ import annotations

import json
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path

import pytest
import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from onyx import DataSource
from onyx.errors import UsageError
from onyx.gateway.call import COOKIE
from onyx.gateway.gateway_process import run_gateway
from onyx.gateway.options import GatewayOptions
from onyx.identity.known_networks import INSECURE, use_credentials
from onyx.listening import bind
from overlay.errors import TopologyError
from overlay.gateway import GatewayTable
from overlay.nodes import Address
from tests.hanging import SAFETY_SECONDS
from tests.onyx.gateway.browsing import Answer, Client
from tests.onyx.gateway.tokens import issue
from tests.onyx.networks import RunningProcess, small_topology_text

SECRET = "a-token-of-an-operator-of-the-tests"
CORS_SECRET = "another-token-of-an-operator-of-the-tests"
SECRET_OF_ANN = "a-token-of-a-user-of-the-tests"
NAME = "onyx.example"
HERE = "127.0.0.1"


def test_beyond_this_machine_it_takes_a_certificate() -> None:
    with pytest.raises(UsageError, match="shows a certificate"):
        GatewayOptions(Address("0.0.0.0", 1)).check()
    with pytest.raises(UsageError, match="go together"):
        GatewayOptions(Address("127.0.0.1", 1), tls_certificate=Path("a.pem")).check()


def certificate(directory: Path) -> tuple[Path, Path]:
    """Of NAME and of this machine, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(HERE))]), False)
        .sign(key, hashes.SHA256())
    )
    files = directory / "gateway.pem", directory / "gateway.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    how = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *how))
    return files


@asynccontextmanager
async def running(registration: str, options: GatewayOptions) -> AsyncIterator[str]:
    """Its URL."""
    listener = bind(options.listen)
    ready = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_gateway, registration, options, listener, ready.set)
        with trio.fail_after(SAFETY_SECONDS):
            await ready.wait()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def test_everybody_shows_a_token(gateway_network: RunningProcess, tmp_path: Path) -> None:
    where = gateway_network.registration
    certificate_file, key = certificate(tmp_path)
    listen = Address("0.0.0.0", 0)
    options = GatewayOptions(listen, certificate_file, key, (NAME,), unacknowledged_max=2)
    tls = ssl.create_default_context(cafile=str(certificate_file))
    tls.check_hostname = False  # what is dialled is an address
    await issue(where, "operator/op", SECRET)
    await issue(where, "user/ann", SECRET_OF_ANN)
    source = (await DataSource.register(where)).id
    async with running(where, options) as url:
        await trio.to_thread.run_sync(check, url, tls, source)


def check(url: str, tls: ssl.SSLContext, source: str) -> None:
    stranger = Client(url, {"host": NAME}, tls)
    refused = stranger.ask("GET", "/v1/profiles")
    assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert stranger.ask("GET", "/").headers["location"] == "/sign-in"
    assert stranger.ask("GET", "/sign-in").status == 200
    assert Client(url, {}, tls).ask("GET", "/sign-in").status == 421, "by another name"
    bearer = {"authorization": f"Bearer {SECRET}"}
    signed: Answer = stranger.ask("POST", "/v1/sign-in", {}, **bearer)
    cookie = signed.headers["set-cookie"]
    assert signed.said == {"principal": "operator/op"}
    assert all(word in cookie for word in ("HttpOnly", "Secure", "SameSite=strict"))
    known = Client(url, {"host": NAME, "cookie": cookie.partition(";")[0]}, tls)
    assert known.ask("GET", "/brokers").status == 200
    check_bound(known, source)
    check_user(Client(url, {"host": NAME, "cookie": f"onyx-token={SECRET_OF_ANN}"}, tls))


def check_user(ann: Client) -> None:
    """She lands on her profiles, and her menu has nothing that is refused; she may sign out."""
    assert ann.ask("GET", "/").headers["location"] == "/profiles"
    page = ann.ask("GET", "/me").said
    assert "user/ann" in page
    targets = re.findall(
        r'<a href="([^"]+)"(?: aria-current="page")?>', page.partition("</nav>")[0]
    )
    assert "/profiles" in targets
    assert {target: ann.ask("GET", target).status for target in targets} == dict.fromkeys(
        targets, 200
    )
    refused = ann.ask("GET", "/brokers")
    assert refused.status == 403
    assert "/brokers" not in refused.said.partition("</nav>")[0]
    left = ann.ask("DELETE", "/v1/sign-in")
    assert (left.status, "Max-Age=0" in left.headers["set-cookie"]) == (204, True)


async def test_pages_of_origins_that_are_allowed_may_use_the_api(
    gateway_network: RunningProcess,
) -> None:
    app = "https://app.example"
    asked = {"origin": app, "sec_fetch_site": "cross-site", "sec_fetch_mode": "cors"}
    wanted = {**asked, "access_control_request_method": "POST"}
    body = {"profile": "/a"}

    def check(url: str, origins: tuple[str, ...]) -> None:
        client = Client(url.replace("https:", "http:"))
        if not origins:
            refused = client.ask("GET", "/v1/profiles", **asked)
            assert (refused.status, refused.said["code"]) == (403, "cross-site")
            assert "access-control-allow-origin" not in refused.headers
            assert client.ask("OPTIONS", "/v1/profiles", **wanted).status == 403
            return
        preflight = client.ask("OPTIONS", "/v1/explain", **wanted)
        assert preflight.status == 204
        allows = preflight.headers
        assert allows["access-control-allow-origin"] == app
        assert "POST" in allows["access-control-allow-methods"].split(", ")
        headers = set(allows["access-control-allow-headers"].split(", "))
        assert {"Authorization", "Content-Type", "Publish-Key", "Last-Event-ID"} <= headers
        assert "access-control-allow-credentials" not in allows
        cookie = {"cookie": f"{COOKIE}={CORS_SECRET}"}
        token = {"authorization": f"Bearer {CORS_SECRET}"}
        answer = client.ask("POST", "/v1/explain", body, **asked)
        whose = client.ask("GET", "/v1/whoami", **asked, **cookie)
        if origins == ("*",):
            assert answer.status == whose.status == 401, "whoever starts the gateway is nobody's"
            answer = client.ask("POST", "/v1/explain", body, **asked, **token)
        else:
            assert whose.said != {"principal": "operator/cors", "operates": True}, "no cookie"
        assert (answer.status, answer.headers["vary"]) == (200, "Origin")
        assert answer.headers["access-control-allow-origin"] == app
        wrong = client.ask("GET", "/v1/profiles/p0-none", **asked, **token)
        assert (wrong.status, wrong.headers["access-control-allow-origin"]) == (404, app)
        form = client.ask("POST", "/v1/explain", "x", **asked, **token, content_type="text/plain")
        assert form.status == 415
        assert client.ask("GET", "/profiles", **asked, **token).status == 403, "pages are not"
        other = {**asked, "origin": "https://attacker.example"}
        status = 200 if origins == ("*",) else 403
        assert client.ask("GET", "/v1/profiles", **other, **token).status == status

    where = gateway_network.registration
    await issue(where, "operator/cors", CORS_SECRET)
    for origins in ((), (app,), ("*",)):
        async with running(where, GatewayOptions(Address("127.0.0.1", 0), origins=origins)) as url:
            await trio.to_thread.run_sync(check, url, origins)


@pytest.mark.parametrize("origin", ["app.example", "https://app.example/", "https://*", "null"])
def test_an_origin_is_a_scheme_and_a_host(origin: str) -> None:
    said = re.escape(f'{origin!r}: expected "https://HOST"')
    with pytest.raises(UsageError, match=said):
        GatewayOptions(origins=(origin,)).check()
    with pytest.raises(TopologyError, match=said):
        GatewayTable(origins=(origin,)).check()


def check_bound(client: Client, source: str) -> None:
    """A stream ends after so many deliveries that nobody says they have."""
    profile = client.add_profile("/bound")
    for number in range(3):
        client.publish(source, f"<bound>{number}</bound>")
    with client.events(f"/v1/results?profile={profile}") as events:
        got = list(events)
    assert [event.kind for event in got] == ["open", "delivery", "delivery"]
    with client.events(f"/v1/results?profile={profile}", last_event_id=got[-1].id) as events:
        next(events)
        assert next(events).data["results"] == ["<bound>2</bound>"]
    client.ask("DELETE", f"/v1/profiles/{profile}")


def test_alone_it_logs_as_the_file_says_at_sighup(
    gateway_network: RunningProcess, tmp_path: Path
) -> None:
    file = tmp_path / "network.toml"
    text = Path(gateway_network.up["topology"]).read_text(encoding="utf-8")
    file.write_text(text + '[log]\nlevel = "error"\n', encoding="utf-8")
    command = [sys.executable, "-m", "onyx", "gateway", "--topology", str(file), "--json"]
    where, pipe = ("--listen", "127.0.0.1:0"), subprocess.PIPE
    with subprocess.Popen([*command, *where], stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert json.loads(process.stdout.readline())["event"] == "up"
            file.write_text(text + '[log]\nformat = "json"\n', encoding="utf-8")
            process.send_signal(signal.SIGHUP)
            said = json.loads(process.stderr.readline())
            assert (said["process"], said["event"]) == ("gateway", "logs json from level info on")
            file.write_text(text + "[log]\nlevel = 1\n", encoding="utf-8")
            process.send_signal(signal.SIGHUP)
            said = json.loads(process.stderr.readline())
            assert said["event"].startswith(f"nothing is changed: {file}: log.level")
        finally:
            process.terminate()
    assert process.returncode == 0


async def test_of_a_network_without_tls_it_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "small.toml"
    file.write_text(small_topology_text(tmp_path / "data", brokers=1), encoding="utf-8")
    network = RunningProcess.start(file, "--insecure")
    try:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of somebody else"))
        with use_credentials(Path(INSECURE)):
            options = GatewayOptions(Address("127.0.0.1", 0))
            async with running(network.registration, options) as url:
                client = Client(url.replace("https:", "http:"))
                ask = partial(client.ask, "GET", "/v1/profiles")
                assert (await trio.to_thread.run_sync(ask)).status == 200
    finally:
        network.stop()
