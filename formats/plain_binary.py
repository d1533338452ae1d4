"""The binary and the dictionary wire form, in plain Python; see ``formats/binary.py``."""

from __future__ import annotations

from formats.dictionary import (
    EMPTY_DICTIONARY,
    ONLY_EMPTY,
    VERSION_BYTES,
    Dictionary,
    DictionaryLookup,
)
from formats.element_stream import ElementStream
from formats.errors import DecodeError
from formats.limits import DEFAULT_LIMITS, MessageLimits
from formats.plain_wire import PlainModel, read_form, write_form

MAGIC = b"\x4f\x02"
DICTIONARY_MAGIC = b"\x4f\x82"


def encode_binary(stream: ElementStream) -> bytes:
    """The binary form of a valid stream."""
    return MAGIC + write_form(stream, _model(EMPTY_DICTIONARY))


def encode_dictionary(stream: ElementStream, dictionary: Dictionary = EMPTY_DICTIONARY) -> bytes:
    """The dictionary form of a valid stream."""
    return DICTIONARY_MAGIC + dictionary.version + write_form(stream, _model(dictionary))


def decode_binary(data: bytes, limits: MessageLimits = DEFAULT_LIMITS) -> ElementStream:
    """The stream of a binary form, or DecodeError."""
    _check_head(data, MAGIC, limits)
    return read_form(data, len(MAGIC), _model(EMPTY_DICTIONARY), limits)


def decode_dictionary(
    data: bytes,
    limits: MessageLimits = DEFAULT_LIMITS,
    dictionaries: DictionaryLookup = ONLY_EMPTY,
) -> ElementStream:
    """The stream of a dictionary form, or DecodeError."""
    _check_head(data, DICTIONARY_MAGIC, limits)
    at = len(DICTIONARY_MAGIC)
    version = data[at : at + VERSION_BYTES]
    if len(version) < VERSION_BYTES:
        raise DecodeError("truncated", "the message ends inside its dictionary's version", at)
    dictionary = dictionaries(version)
    if dictionary is None:
        reason = f"no dictionary has version {version.hex()}"
        raise DecodeError("unknown-dictionary", reason, at)
    return read_form(data, at + VERSION_BYTES, _model(dictionary), limits)


def _model(dictionary: Dictionary) -> PlainModel:
    """The model of the dictionary, or a new one where the dictionary has a compiled one."""
    known: object = dictionary.model
    if isinstance(known, PlainModel):
        return known
    return PlainModel(dictionary.strings, dictionary.values, dictionary.grammar)


def _check_head(data: bytes, magic: bytes, limits: MessageLimits) -> None:
    if len(data) > limits.bytes_max:
        reason = f"{len(data)} bytes; at most {limits.bytes_max} are allowed"
        raise DecodeError("too-large", reason)
    if not data.startswith(magic):
        raise DecodeError("bad-magic", f"expected a message that begins with {magic.hex(' ')}")
