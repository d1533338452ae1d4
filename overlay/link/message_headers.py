"""Headers of a message: what its publisher says of it, text by name, which goes with it from broker
to broker.  Most have none, and then there is no such field on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TypeAlias

from overlay.link.errors import ProtocolError

# -------------------------------------------------------------------------------------------------
# Publish keys: by which a message is known when its source publishes it again.


DIGEST_BYTES = 16


def digest(key: str) -> bytes:
    """What goes on the wire in place of a key, and is kept."""
    return blake2b(key.encode("utf-8", "surrogateescape"), digest_size=DIGEST_BYTES).digest()


# -------------------------------------------------------------------------------------------------


Headers: TypeAlias = Mapping[str, str]

HEADERS_MAX = 16
HEADERS_BYTES_MAX = 4096  # of all names and values together
TRACEPARENT = "traceparent"
"""By which a message is traced: W3C Trace Context."""


def checked_headers(value: object) -> Headers | None:
    """As they go on the wire, None for none; ProtocolError for what is no such map."""
    if not isinstance(value, Mapping):
        raise ProtocolError("bad-field", "field 'headers' is no map of text to text")
    size = 0
    for name, text in value.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise ProtocolError("bad-field", "field 'headers' is no map of text to text")
        try:
            size += len(name.encode()) + len(text.encode())
        except UnicodeEncodeError:
            raise ProtocolError("bad-field", "field 'headers' is not valid Unicode") from None
    if len(value) > HEADERS_MAX or size > HEADERS_BYTES_MAX:
        raise ProtocolError(
            "too-long",
            f"field 'headers' has {len(value)} of {size} bytes; at most {HEADERS_MAX} of "
            f"{HEADERS_BYTES_MAX} bytes",
        )
    return dict(value) or None
