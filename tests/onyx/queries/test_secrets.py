"""Secrets for old systems: only the provider that needs one reads it, and only for its query."""

from __future__ import annotations

import hmac
from base64 import b64decode
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from onyx.cli.main import main
from onyx.errors import EXIT_NO_PERMISSION, NotAuthenticated
from onyx.identity.authority import Authority
from onyx.identity.sealing import open_sealed, seal_for
from onyx.identity.signing import SignatureCheck, Signer
from onyx.queries.secrets import Of, open_secrets, seal_secrets, where_allowed, with_secrets
from onyx.queries.signatures import Order, seal
from overlay.link.principal import Principal
from registration.queries.providers import CycleProvider, Market, Relation, Secret
from registration.queries.query_plan import Fragment, Scan
from registration.queries.refusals import QueryRefused

A, B = CycleProvider("urn:a", "A", "h", 7), CycleProvider("urn:b", "B", "h", 8)
TEXT = "hunter2 \u00e4"
OLD = Relation(
    "urn:r", "A.R", "urn:p", ("urn:a",), "jdbc", "jdbc:x", (), options=(("dbtable", "t"),),
    secrets=(("password", "warehouse"), ("user", "login")),
)  # fmt: skip
SECRETS = {"warehouse": TEXT, "login": "ann", "other": "not asked for"}
FRAGMENT = Fragment(1, A, (Scan("s", OLD, ()),), (), (), "SELECT * FROM s")
OF: Of = ("0" * 32, "user/ann")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path / "identity", "figure 1")


def credentials(authority: Authority, folder: Path, name: str) -> Path:
    path = folder / f"{name}.pem"
    path.write_bytes(authority.issue(Principal("provider", name)))
    return path


def certificate(file: Path) -> x509.Certificate:
    return SignatureCheck.by(file).holder(Signer(file).certificate)[0]


# --- the oracle: P-256 by its equation (FIPS 186-4, D.1.2.3), HKDF by RFC 5869 ------------------

P = 2**256 - 2**224 + 2**192 + 2**96 - 1
Point = tuple[int, int] | None


def plus(one: Point, two: Point) -> Point:
    if one is None or two is None:
        return one or two
    (x, y), (u, v) = one, two
    if x == u and (y + v) % P == 0:
        return None
    slope = (3 * x * x - 3) * pow(2 * y, -1, P) if one == two else (v - y) * pow(u - x, -1, P)
    z = (slope * slope - x - u) % P
    return z, (slope * (x - z) - y) % P


def times(number: int, point: Point) -> Point:
    found: Point = None
    while number:
        found = plus(found, point) if number & 1 else found
        point, number = plus(point, point), number >> 1
    return found


def test_a_text_is_sealed_as_it_is_said() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    numbers = key.public_key().public_numbers()
    own = b"\x04" + numbers.x.to_bytes(32) + numbers.y.to_bytes(32)
    sealed = seal_for(_Holder(key.public_key()), b"text", b"context")  # type: ignore[arg-type]
    point = sealed[:65]
    shared = times(
        key.private_numbers().private_value,
        (int.from_bytes(point[1:33]), int.from_bytes(point[33:])),
    )
    assert shared is not None
    extracted = hmac.digest(bytes(32), shared[0].to_bytes(32), sha256)
    info = b"onyx sealed text 1\n" + point + own
    made = hmac.digest(extracted, info + b"\x01", sha256)
    assert AESGCM(made).decrypt(bytes(12), sealed[65:], b"context") == b"text"


class _Holder:
    def __init__(self, key: object) -> None:
        self._key = key

    def public_key(self) -> object:
        return self._key


def test_a_sealed_text_opens_for_its_key_and_context_alone() -> None:
    key, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    holder = _Holder(key.public_key())
    sealed = seal_for(holder, b"text", b"context")  # type: ignore[arg-type]
    assert open_sealed(key, sealed, b"context") == b"text"
    assert sealed != seal_for(holder, b"text", b"context")  # type: ignore[arg-type]
    for private, text, context in (
        (other, sealed, b"context"),
        (key, sealed, b"contexts"),
        *((key, sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :], b"context")
          for at in range(len(sealed))),
        *((key, sealed[:size], b"context") for size in (0, 1, 65, len(sealed) - 1)),
    ):  # fmt: skip
        with pytest.raises(NotAuthenticated):
            open_sealed(private, text, context)
    for wrong in (ec.generate_private_key(ec.SECP384R1()).public_key(), None):
        with pytest.raises(NotAuthenticated, match=r"not of P-256"):
            seal_for(_Holder(wrong), b"", b"")  # type: ignore[arg-type]


# --- query plans --------------------------------------------------------------------------------


def test_a_plan_has_the_secrets_that_a_provider_needs_and_only_it_opens_them(
    authority: Authority, tmp_path: Path
) -> None:
    a, b = (credentials(authority, tmp_path, name) for name in "AB")
    sealed = seal_secrets(OF, FRAGMENT, SECRETS, lambda: certificate(a))
    assert [(each.site, each.name) for each in sealed] == [
        ("urn:a", "login"),
        ("urn:a", "warehouse"),
    ]
    order = replace(Order((FRAGMENT,), "urn:c"), secrets=sealed)
    plan = seal(order, Signer(b))
    texts = [b64decode(each.text) for each in sealed]
    assert all(
        secret.encode() not in part for secret in SECRETS.values() for part in (plan, *texts)
    )
    opened = open_secrets(OF, sealed, "urn:a", Signer(a))
    assert opened == {"warehouse": TEXT, "login": "ann"}
    assert open_secrets(OF, sealed, "urn:b", Signer(b)) == {}
    moved = tuple(each._replace(site="urn:b") for each in sealed)
    renamed = tuple(each._replace(name="login") for each in sealed[1:])
    for of, some, site, file in (
        (OF, sealed, "urn:a", b),
        (("1" * 32, OF[1]), sealed, "urn:a", a),
        ((OF[0], "user/eve"), sealed, "urn:a", a),
        (OF, moved, "urn:b", b),
        (OF, moved, "urn:b", a),
        (OF, renamed, "urn:a", a),
        (OF, (sealed[0]._replace(text="\u00e4"),), "urn:a", a),
    ):
        with pytest.raises(QueryRefused) as refused:
            open_secrets(of, some, site, Signer(file))
        assert refused.value.code == "bad-signature"


def test_a_secret_is_a_value_of_an_option_that_no_text_shows() -> None:
    (scan,) = with_secrets(FRAGMENT, SECRETS).scans
    assert dict(scan.relation.options) == {"dbtable": "t", "password": TEXT, "user": "ann"}
    shown = f"{scan} {scan.relation!r} {Secret(TEXT)!r}"
    assert TEXT not in shown
    assert shown.count("***") == 5
    with pytest.raises(QueryRefused, match=r"A\.R is read by the secret 'warehouse'") as missing:
        with_secrets(FRAGMENT, {})
    assert "--secret warehouse=FILE" in missing.value.hint
    assert seal_secrets(OF, replace(FRAGMENT, scans=()), {}, pytest.fail) == ()


def test_a_secret_of_one_provider_is_sealed_for_it_alone(
    authority: Authority, tmp_path: Path
) -> None:
    a = credentials(authority, tmp_path, "A")
    bound = {"warehouse@A": TEXT, "warehouse": "for others", "login": "ann"}
    sealed = seal_secrets(OF, FRAGMENT, bound, lambda: certificate(a))
    assert open_secrets(OF, sealed, "urn:a", Signer(a)) == {"warehouse": TEXT, "login": "ann"}
    elsewhere = replace(FRAGMENT, site=B)
    (scan,) = with_secrets(elsewhere, bound).scans
    assert dict(scan.relation.options)["password"] == "for others"
    del bound["warehouse"]
    with pytest.raises(QueryRefused) as refused:
        seal_secrets(OF, elsewhere, bound, pytest.fail)
    assert refused.value.reason == (
        "A.R is read by the secret 'warehouse' at B, and that is for A alone"
    )
    assert refused.value.hint == "say --secret warehouse@B=FILE where B may have it"


def test_a_relation_is_read_where_its_secrets_may_be() -> None:
    table = replace(OLD, read_at=("urn:a", "urn:b"))
    market = Market({}, {}, {each.uri: each for each in (A, B)}, {table.uri: table}, {})

    def places(*names: str) -> tuple[str, ...]:
        allowed = where_allowed(market, dict.fromkeys(names, TEXT))
        return allowed.relations[table.uri].read_at

    assert places("warehouse", "login") == ("urn:a", "urn:b")
    assert places("warehouse@B", "login") == ("urn:b",)
    assert places("warehouse@B", "warehouse@A", "login@A") == ("urn:a",)
    assert places() == ("urn:a", "urn:b"), "the secret that is missing is named later"
    assert places("warehouse@B", "login@A") == ("urn:a", "urn:b")
    with pytest.raises(QueryRefused, match="is for b, which is no cycle provider") as refused:
        places("warehouse@b")
    assert refused.value.hint == "did you mean B?"


def test_the_command_names_a_secret_that_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    market = tmp_path / "market.ttl"
    market.write_text(
        "@prefix q: <urn:onyx:query:1#> . @prefix : <http://example.org/#> .\n"
        ':A a q:DataProvider ; q:name "A" .\n'
        ':R a q:Relation ; q:name "R" ; q:provider :A ; q:readAt <urn:onyx:query:client> ;\n'
        '    q:format "jdbc" ; q:location "" ; q:secret "url=warehouse" ; q:schema "id INT" .\n'
    )
    command = ["query", "SELECT id FROM A.R", "--catalog", str(market)]
    assert main([*command, "--explain"]) == 0, "nobody needs a secret for a plan"
    assert main(command) == EXIT_NO_PERMISSION
    assert "A.R is read by the secret 'warehouse'" in capsys.readouterr().err
    market.write_text(market.read_text().replace("url=warehouse", "warehouse"))
    assert main(["provider", "check", str(market)]) != 0
    assert "the secret 'warehouse' is not OPTION=NAME" in capsys.readouterr().out
    market.write_text(market.read_text().replace('"warehouse"', '"url=warehouse@A"'))
    assert main(["provider", "check", str(market)]) != 0
    assert "'url=warehouse@A' is not OPTION=NAME, a name without @" in capsys.readouterr().out
