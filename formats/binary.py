"""The binary and the dictionary wire form: a message as columns, less what both ends can know.

The paper's element stream format on the wire (section 4.3.2), with its future work: what the schema
or the message so far lets one expect is a bit, not a name.

::

    4f 02                      binary, version 2          4f 82   dictionary, version 2, and 4 bytes
    head                       bindings and names that are not the dictionary's
    4 sizes
    bits                       one for each event: it is the expected one
    tokens                     the events that are not, new sets of attributes, declarations
    codes of attribute values, codes of content
    run of attribute values, run of content

docs/formats.md gives the layout to the byte, with test vectors.  Decoding trusts nothing: see
``decode_binary``.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from formats.dictionary import (
    EMPTY_DICTIONARY,
    ONLY_EMPTY,
    VERSION_BYTES,
    Dictionary,
    DictionaryLookup,
)
from formats.element_stream import ElementStream
from formats.errors import DecodeError
from formats.kernel import AVAILABLE
from formats.limits import DEFAULT_LIMITS, MessageLimits

if TYPE_CHECKING or AVAILABLE:
    from formats.wire import read_binary, write_binary
else:
    from formats.plain_wire import read_form as read_binary
    from formats.plain_wire import write_form as write_binary

MAGIC = b"\x4f\x02"
DICTIONARY_MAGIC = b"\x4f\x82"
_VERSION_AT = len(DICTIONARY_MAGIC)
_HEAD_AT = _VERSION_AT + VERSION_BYTES


class BinaryForms:
    """Both forms, by a ``read`` and a ``write`` of columns and the ``model`` of a dictionary that
    these take."""

    def __init__(
        self,
        read: Callable[[bytes, int, Any, MessageLimits], ElementStream],
        write: Callable[[ElementStream, Any], bytes],
        model: Callable[[Dictionary], Any],
    ) -> None:
        self._read = read
        self._write = write
        self._model = model

    def encode_binary(self, stream: ElementStream) -> bytes:
        """The binary form of a valid stream; equal streams have equal bytes."""
        return MAGIC + self._write(stream, self._model(EMPTY_DICTIONARY))

    def encode_dictionary(
        self, stream: ElementStream, dictionary: Dictionary = EMPTY_DICTIONARY
    ) -> bytes:
        """The dictionary form of a valid stream; equal streams have equal bytes."""
        return DICTIONARY_MAGIC + dictionary.version + self._write(stream, self._model(dictionary))

    def decode_binary(self, data: bytes, limits: MessageLimits = DEFAULT_LIMITS) -> ElementStream:
        """The stream of a binary form, or DecodeError.

        Whatever the bytes are, the result is a stream that satisfies every invariant of
        ElementStream and that ``to_text`` writes as a well-formed document, or an error.  Time and
        memory are linear in ``len(data)`` and bounded by ``limits``.

        Codes: ``bad-magic``, ``truncated``, ``trailing-bytes``, ``bad-count``, ``bad-number``,
        ``bad-string``, ``bad-structure``, those of names and values in docs/formats.md and those of
        MessageLimits.
        """
        _check_head(data, MAGIC, limits)
        return self._read(data, len(MAGIC), self._model(EMPTY_DICTIONARY), limits)

    def decode_dictionary(
        self,
        data: bytes,
        limits: MessageLimits = DEFAULT_LIMITS,
        dictionaries: DictionaryLookup = ONLY_EMPTY,
    ) -> ElementStream:
        """The stream of a dictionary form, or DecodeError; all as for ``decode_binary``.

        One more code: ``unknown-dictionary``.
        """
        _check_head(data, DICTIONARY_MAGIC, limits)
        if len(data) < _HEAD_AT:
            reason = "the message ends inside its dictionary's version"
            raise DecodeError("truncated", reason, _VERSION_AT)
        version = data[_VERSION_AT:_HEAD_AT]
        dictionary = dictionaries(version)
        if dictionary is None:
            reason = f"no dictionary has version {version.hex()}"
            raise DecodeError("unknown-dictionary", reason, _VERSION_AT)
        return self._read(data, _HEAD_AT, self._model(dictionary), limits)


_FORMS = BinaryForms(read_binary, write_binary, attrgetter("model"))
encode_binary = _FORMS.encode_binary
encode_dictionary = _FORMS.encode_dictionary
decode_binary = _FORMS.decode_binary
decode_dictionary = _FORMS.decode_dictionary


def _check_head(data: bytes, magic: bytes, limits: MessageLimits) -> None:
    if len(data) > limits.bytes_max:
        reason = f"{len(data)} bytes; at most {limits.bytes_max} are allowed"
        raise DecodeError("too-large", reason)
    if not data.startswith(magic):
        raise DecodeError("bad-magic", f"expected a message that begins with {magic.hex(' ')}")
