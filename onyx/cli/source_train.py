"""``onyx source train``: a compression dictionary from example messages, without a network."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from formats import (
    COMPRESSION_DICTIONARY_BYTES_MAX,
    EMPTY_DICTIONARY,
    FORMS,
    Dictionary,
    FormatError,
    WireFormat,
    derive_dictionary,
    encode,
    parse_text,
    train,
)
from onyx.cli.values import check_once, expand, print_json, read_input
from onyx.cli.verb import Subparsers, add_verb
from onyx.data_directory import write_atomically
from onyx.errors import EXIT_DATA, EXIT_OK, UnreadableInput, UsageError
from onyx.schema_path import load_schema
from overlay.limits import TrainingLimits

EXAMPLES = """\
  onyx source train examples/ --output quotes.zdict
  onyx source train examples/ --form dictionary --schema quote.dtd --output quotes.zdict
"""
DETAILS = """\
At least 16 messages are needed, some hundred small ones are good. Give the dictionary to
'onyx source register --compression FORM=FILE' with the same form and schema: that of the
links that are to gain by it. What it saves is measured on a quarter of the messages, which
is held out of the training. Messages that are not well-formed, or longer than 16 KiB, are
left out.

Exit code 65 when no dictionary is worth it."""

_LIMITS = TrainingLimits()


def add_parser(subverbs: Subparsers) -> None:
    takes = {
        "inputs FILE|DIR...": "a message, or a directory of messages",
        "--output FILE!": "where it goes",
        f"--form {{{','.join(FORMS)}}} = {WireFormat.TEXT}": "in which the messages are compressed "
        "(default text)",
        "--schema FILE": "the schema of the source, for the dictionary form",
        f"--bytes N = {_LIMITS.dictionary_bytes_max}": "of the dictionary at most (default "
        f"{_LIMITS.dictionary_bytes_max:,})",
        "--json": "print one JSON object",
    }
    summary = "make a compression dictionary from example messages"
    add = partial(add_verb, subverbs, "train", summary, run, takes)
    add(details=DETAILS, examples=EXAMPLES, kinds={"schema": str})


def run(arguments: argparse.Namespace) -> int:
    if arguments.bytes > COMPRESSION_DICTIONARY_BYTES_MAX:
        most = COMPRESSION_DICTIONARY_BYTES_MAX
        raise UsageError(f"--bytes {arguments.bytes} is too large, at most {most}")
    check_once(arguments.inputs)
    samples, left_out = _read_messages(arguments)
    outcome = train(samples, arguments.bytes)
    facts = {
        "messages": len(samples),
        "left_out": left_out,
        "held_out_bytes_before": outcome.bytes_before,
        "held_out_bytes_after": outcome.bytes_after,
        "version": f"{outcome.dictionary.version:08x}" if outcome.dictionary else None,
    }
    if outcome.dictionary is not None:
        write_atomically(arguments.output, outcome.dictionary.data)
    if arguments.json:
        print_json(facts)
    elif outcome.dictionary is None:
        print(f"no dictionary is worth it for these {len(samples)} messages", file=sys.stderr)
    else:
        saved = 1 - outcome.bytes_after / outcome.bytes_before
        print(
            f"{arguments.output}: version {facts['version']}, "
            f"{len(outcome.dictionary.data):,} bytes, from {len(samples)} messages; "
            f"others compressed with it are {saved:.0%} smaller"
        )
    return EXIT_OK if outcome.dictionary is not None else EXIT_DATA


def _read_messages(arguments: argparse.Namespace) -> tuple[list[bytes], int]:
    """(messages in the form, how many were left out)."""
    form = WireFormat(arguments.form)
    words = _words(arguments.schema)
    samples, left_out = [], 0
    for name in expand(arguments.inputs):
        text = read_input(name, _LIMITS.sample_bytes_max)
        try:
            stream = parse_text(text)
        except FormatError:
            left_out += 1
            continue
        # The bytes of a source's text travel as they are.
        sample = text if form is WireFormat.TEXT else encode(stream, form, words)
        if len(sample) <= _LIMITS.sample_bytes_max:
            samples.append(sample)
        else:
            left_out += 1
    return samples, left_out


def _words(schema: str | None) -> Dictionary:
    if schema is None:
        return EMPTY_DICTIONARY
    try:
        read = load_schema(schema)
    except FormatError as refusal:
        raise UnreadableInput(f"{schema}: {refusal}") from None
    return derive_dictionary(read) or EMPTY_DICTIONARY
