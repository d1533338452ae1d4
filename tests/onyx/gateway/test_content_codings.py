"""Bodies that come in a content coding, and documents that come with a charset."""

from __future__ import annotations

import gzip
import zlib
from functools import partial

import pytest

from onyx.errors import RequestFailed, ending
from onyx.gateway.gateway_process import MEMBERS_MAX, in_no_coding
from tests.onyx.gateway.browsing import Client

zipped = partial(gzip.compress, mtime=0)  # a test is named by its bytes, in every process alike
BODY = b"<coded>" + b"x" * 5_000 + b"</coded>"
MAX = 10_000


def raw(body: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(body) + made.flush()


@pytest.mark.parametrize(
    ("said", "coded"),
    [
        ("gzip", zipped(BODY)),
        ("X-GZIP", zipped(BODY)),
        ("deflate", zlib.compress(BODY)),
        ("deflate", raw(BODY)),
        ("identity", BODY),
        (" gzip , identity", zipped(BODY)),
        ("deflate, gzip", zipped(zlib.compress(BODY))),
        ("gzip", zipped(BODY[:7]) + zipped(b"") + zipped(BODY[7:])),
    ],
)
def test_a_coded_body_is_read(said: str, coded: bytes) -> None:
    assert in_no_coding(coded, said, MAX) == BODY


@pytest.mark.parametrize(
    ("said", "coded", "status"),
    [
        ("br", BODY, 415),
        ("gzip, aes128gcm", BODY, 415),
        ("gzip, gzip, gzip", BODY, 415),
        ("gzip", BODY, 400),
        ("gzip", b"", 400),
        ("gzip", zipped(BODY)[:-9], 400),
        ("gzip", zipped(BODY) + b"and more", 400),
        ("deflate", zlib.compress(BODY) + b"and more", 400),
        ("gzip", zipped(bytes(MAX + 1)), 413),
        ("gzip", zipped(bytes(MAX // 2 + 1)) * 2, 413),
        ("gzip, gzip", zipped(zipped(bytes(100 * MAX))), 413),
        ("gzip", zipped(b"") * (MEMBERS_MAX + 1), 400),
    ],
)
def test_another_coding_a_broken_body_and_a_bomb_are_refused(
    said: str, coded: bytes, status: int
) -> None:
    with pytest.raises(RequestFailed) as refused:
        in_no_coding(coded, said, MAX)
    assert ending(refused.value.code)[1] == status


def test_a_bomb_is_not_unpacked_beyond_the_bound() -> None:
    bomb = zipped(bytes(200_000_000), compresslevel=1)
    with pytest.raises(RequestFailed):
        in_no_coding(bomb, "gzip", MAX)


def test_a_message_is_published_in_a_coding_and_by_its_charset(client: Client, source: str) -> None:
    profile = client.add_profile("//priced[title]")
    path = f"/v1/sources/{source}/messages"
    text = "<?xml version='1.0' encoding='ISO-8859-1'?><priced><title>{} €</title></priced>"
    kind = "application/xml; charset=iso-8859-15"
    first, second = (text.format(number).encode("iso-8859-15") for number in (1, 2))
    assert client.ask("POST", path, first, content_type=kind).status == 201
    sent = zipped(second)
    assert client.ask("POST", path, sent, content_type=kind, content_encoding="gzip").status == 201
    with client.events(f"/v1/results?profile={profile}&acknowledge=sent") as events:
        next(events)
        got = [next(events).data["results"] for _ in range(2)]
    assert got == [[f"<priced><title>{number} €</title></priced>"] for number in (1, 2)]
    xml = "application/xml"
    refused = client.ask("POST", path, first, content_type=xml, content_encoding="br")
    assert (refused.status, refused.said["code"]) == (415, "content-encoding")
    refused = client.ask("POST", path, first, content_type=f"{xml}; charset=x-none")
    assert (refused.status, refused.said["code"]) == (415, "unknown-charset")
    text = "<?xml version='1.0' encoding='ISO-8859-1'?><priced>1 €</priced>"
    about = {"profile": "/priced", "message": text}
    found = client.ask("POST", "/v1/explain", about)
    assert found.said["results_shown"] == ["<priced>1 €</priced>"]
    client.ask("DELETE", f"/v1/profiles/{profile}")
