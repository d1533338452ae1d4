"""Tokens of OpenID Connect: by the keys that their issuer serves, a user's until they end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from onyx.cli.main import main
from onyx.errors import EXIT_CONFIG
from onyx.identity.oidc_issuer import LEEWAY_SECONDS, READ_SECONDS_MIN, OidcIssuer, read_keys
from overlay.link.errors import ProtocolError
from overlay.oidc import OidcOptions
from overlay.topology import TopologyError, parse_topology, to_toml
from tests.issuer import (
    KEYS,
    URL,
    Issuer,
    encoded,
    own_certificate,
    public,
    public_key_as_secret,
    signed,
    token,
)
from tests.onyx.networks import small_topology_text

NOW = int(time.time())  # when the tests are collected, which may be long before one runs
DAY = 86_400
RSA = KEYS["rsa"][0]


@pytest.fixture
def server() -> Iterator[Issuer]:
    with Issuer() as server:
        yield server


@pytest.fixture
async def issuer(server: Issuer) -> OidcIssuer:
    """Who has read the keys."""
    issuer = OidcIssuer(server.options)
    await issuer.read()
    return issuer


def refusal(issuer: OidcIssuer, shown: str) -> tuple[str, str]:
    """The code, and why."""
    with pytest.raises(ProtocolError) as refused:
        issuer.principal(shown)
    assert refused.value.fatal
    return refused.value.code, refused.value.reason


@pytest.mark.parametrize("key", ["rsa", "elliptic", "edwards"])
async def test_a_token_that_the_issuer_has_signed_is_a_users_until_it_ends(
    issuer: OidcIssuer, key: str
) -> None:
    ann = issuer.principal(token(key, exp=NOW + DAY))
    assert (str(ann), ann.token, ann.until) == ("user/ann", "", NOW + DAY + LEEWAY_SECONDS)


async def test_a_key_signs_with_what_is_for_it_and_for_many_audiences(issuer: OidcIssuer) -> None:
    shown = signed(RSA, "PS512", "rsa", aud=["others", "onyx-small"], nbf=None)
    assert str(issuer.principal(shown)) == "user/ann"


def with_header(header: str) -> str:
    _, body, signature = token().split(".")
    return f"{encoded(header.encode())}.{body}.{signature}"


BAD: dict[str, tuple[Callable[[], str], str]] = {
    "over": (lambda: token(exp=NOW - 60), "expired"),
    "without an end": (lambda: token(exp=None), '"exp"'),
    "an end without end": (lambda: token(exp=float("inf")), "exp"),
    "not yet": (lambda: token(nbf=NOW + DAY), "not yet valid"),
    "for another network": (lambda: token(aud="onyx-large"), "Audience"),
    "for nobody": (lambda: token(aud=None), '"aud"'),
    "of another issuer": (lambda: token(iss="https://evil.example"), "issuer"),
    "of no issuer": (lambda: token(iss=None), '"iss"'),
    "of nobody": (lambda: token(sub=None), '"sub"'),
    "another key": (lambda: signed(KEYS["other"][0], "RS256", "rsa"), "Signature"),
    "another kind of key": (lambda: signed(KEYS["elliptic"][0], "ES256", "rsa"), "alg"),
    "none": (lambda: signed("", "none", "rsa"), "alg"),
    "the public key as a secret": (public_key_as_secret, "alg"),
    "the same, named None": (lambda: public_key_as_secret("None"), "alg"),
    "a key that is not known": (lambda: signed(KEYS["other"][0], "RS256", "other"), "'other'"),
    "no key named of several": (lambda: signed(RSA, "RS256", None), "''"),
    "a name with a slash": (lambda: token(sub="ann/../root"), "printable characters"),
    "a name with a bar": (lambda: token(sub="ann|bob"), "printable characters"),
    "a name of nothing": (lambda: token(sub=""), "printable characters"),
    "a name that is long": (lambda: token(sub="a" * 201), "printable characters"),
    "a name that is a number": (lambda: token(sub=7), "Subject"),
    "altered": (lambda: token()[:-8] + "AAAAAAAA", "Signature"),
    "two parts": (lambda: "a.b", "segments"),
    "a header in arrays": (lambda: with_header("[" * 2_000 + "]" * 2_000), ""),
    "a header of digits": (lambda: with_header('{"alg": ' + "9" * 5_000 + "}"), ""),
    "a header with what must be understood": (
        lambda: with_header('{"alg": "RS256", "kid": "rsa", "crit": ["x"], "x": 1}'),
        "crit",
    ),
    "a key that is a list": (lambda: with_header('{"alg": "RS256", "kid": []}'), ""),
}


@pytest.mark.parametrize("name", BAD)
async def test_any_other_is_nobodys(issuer: OidcIssuer, name: str) -> None:
    shown, why = BAD[name]
    code, detail = refusal(issuer, shown())
    assert code == "not-authenticated"
    assert detail.startswith(f"the token is none of {URL}: ") and why in detail


async def test_the_only_key_need_not_be_named() -> None:
    with Issuer("rsa") as server:
        issuer = OidcIssuer(server.options)
        await issuer.read()
    assert str(issuer.principal(signed(RSA, "RS256", None))) == "user/ann"


async def test_another_claim_may_be_the_name(server: Issuer) -> None:
    options = OidcOptions(URL, server.options.audience, server.options.jwks, "email")
    issuer = OidcIssuer(options)
    await issuer.read()
    assert str(issuer.principal(token(email="ann@example.com"))) == "user/ann@example.com"
    assert refusal(issuer, token())[0] == "not-authenticated"
    assert "is no text" in refusal(issuer, token(email=["ann"]))[1]


async def test_keys_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [public("rsa")]}), encoding="ascii")
    issuer = OidcIssuer(OidcOptions(URL, "onyx-small", str(file)))
    await issuer.read()
    assert str(issuer.principal(token())) == "user/ann"


async def test_keys_come_over_tls_from_whom_this_machine_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = own_certificate(tmp_path / "issuer.pem")
    with Issuer(certificate=certificate) as server:
        assert server.options.jwks.startswith("https://")
        issuer = OidcIssuer(server.options)
        await issuer.read()
        assert refusal(issuer, token())[0] == "keys-awaited", "it may be anybody"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        await issuer.read()
        assert str(issuer.principal(token())) == "user/ann"


async def until(condition: Callable[[], bool]) -> None:
    """What a thread does comes about, whatever the clock of the test says."""
    while not condition():
        await trio.lowlevel.checkpoint()


def is_known(issuer: OidcIssuer, shown: str) -> bool:
    with suppress(ProtocolError):
        return str(issuer.principal(shown)) == "user/ann"
    return False


async def test_keys_are_read_again_for_one_that_is_not_known_but_seldom(
    server: Issuer, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    issuer = OidcIssuer(server.options)
    assert refusal(issuer, token())[0] == "keys-awaited"
    nursery.start_soon(issuer.run)
    await until(lambda: is_known(issuer, token()))
    server.publish("other")  # the issuer has other keys from now on
    shown = token("other")
    for _ in range(100):
        assert refusal(issuer, shown)[0] == "not-authenticated"
    await trio.testing.wait_all_tasks_blocked()
    assert server.reads == 1
    mock_clock.jump(READ_SECONDS_MIN)
    await until(lambda: is_known(issuer, shown))
    assert server.reads == 2
    assert refusal(issuer, token())[0] == "not-authenticated", "the former key is none any more"
    mock_clock.jump(READ_SECONDS_MIN)
    await until(lambda: server.reads == 3)  # for the former one


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (404, b"{}"),
        (302, b""),
        (200, b""),
        (200, b"[1]"),
        (200, b'{"keys": 1}'),
        (200, b'{"keys": []}'),
        (200, b'{"kiys": []}'),
        (200, b'{"keys": ["rsa"]}'),
        (200, b'{"keys": [{"kty": "oct", "kid": "rsa", "k": "AAAA"}]}'),
        (200, b'{"keys": [{"kty": ["RSA"]}]}'),
        (200, b'{"keys": [{"kty": "RSA", "n": "AQAB", "e": "-"}]}'),
        (200, b'{"keys": ' + b"[" * 5_000),
        (200, b'{"keys": [' + b" " * 300_000 + b"]}"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_what_is_no_set_of_keys_leaves_those_of_before(
    server: Issuer, issuer: OidcIssuer, status: int, answer: bytes
) -> None:
    server.status, server.answer = status, answer
    await issuer.read()
    assert server.reads == 2
    assert str(issuer.principal(token())) == "user/ann"


def test_keys_that_no_token_may_be_signed_with_are_passed_over() -> None:
    """Symmetric ones, of encryption, for an algorithm that is none of theirs."""
    others = [
        {"kty": "oct", "kid": "secret", "k": "AAAA", "alg": "HS256"},
        {**public("other"), "use": "enc"},
        {**public("other"), "alg": "HS256"},
        {**public("elliptic"), "crv": "secp256k1"},
    ]
    found = read_keys(json.dumps({"keys": [*others, public("rsa")]}).encode())
    assert list(found) == ["rsa"]


SECTION = '[oidc]\nissuer = "i"\naudience = "a"\njwks = "https://i/keys"\n'


def test_a_topology_says_whose_tokens_are_taken(tmp_path: Path) -> None:
    text = small_topology_text(tmp_path)
    topology = parse_topology(text + SECTION, "t.toml")
    assert topology.oidc == OidcOptions("i", "a", "https://i/keys")
    assert parse_topology(to_toml(topology), "t.toml") == topology
    assert parse_topology(text, "t.toml").oidc is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('jwks = "http://issuer.example/keys"', "no https"),
        ('jwks = "ftp://issuer.example/keys"', "no https"),
        ('jwks = "http://[/keys"', "no https"),
        ('claim = ""', "must not be empty"),
        ("issuer = 7", "must be a string"),
        ('secret = "s"', "unknown key"),
    ],
)
def test_a_section_that_is_none_is_refused(tmp_path: Path, line: str, why: str) -> None:
    key = line.partition(" ")[0]
    kept = [each for each in SECTION.split("\n") if not each.startswith(f"{key} ")]
    with pytest.raises(TopologyError, match=rf"oidc\.{key}: .*{why}"):
        parse_topology("\n".join([small_topology_text(tmp_path), *kept, line]), "t.toml")


def test_a_network_with_such_tokens_takes_pyjwt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("onyx.release.find_spec", lambda name: None)
    file = tmp_path / "t.toml"
    file.write_text(small_topology_text(tmp_path) + SECTION, encoding="utf-8")
    assert main(["up", str(file)]) == EXIT_CONFIG
    assert "pip install 'onyx-dissemination[oidc]'" in capsys.readouterr().err
