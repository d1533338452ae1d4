"""``onyx profile explain``: what becomes of a profile, and on a message, what held."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from formats.errors import DecodeError, MessageRefused, SchemaRefused
from formats.media_types import media_type_of
from formats.publication import read_publication
from onyx.cli.profile_check import SCHEMA_HELP, schema_check, warning_object
from onyx.cli.values import (
    add_base_argument,
    add_media_type_argument,
    print_json,
    read_input,
    read_text,
)
from onyx.cli.verb import Subparsers, add_verb, set_run
from onyx.errors import EXIT_DATA, EXIT_OK
from yfilter import Matcher, MatchLimitExceeded, ProfileRefused

EXAMPLES = """\
  onyx profile explain storms.xq
  onyx profile explain storms.xq --message warning.xml
  onyx profile explain fog.rq --message posts.ttl
  echo '//item[2]' | onyx profile explain - --json
"""


def add_explain(verbs: Subparsers) -> None:
    parser = add_verb(
        verbs,
        "explain",
        "show how a profile is matched and routed",
        details="By what the engine finds it, its steps and conditions, what is left to the end,\n"
        "and the routing query. On a message: on which elements each part held, and the first\n"
        "that did not. No network is needed.",
        examples=EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE|-", help="the text of a profile")
    parser.add_argument("--message", metavar="FILE", help="a message to try it on")
    add_media_type_argument(parser)
    add_base_argument(parser)
    parser.add_argument("--schema", metavar="PATH", help=SCHEMA_HELP)
    parser.add_argument("--strict", action="store_true", help="exit code 65 for a warning, too")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    set_run(parser, run_explain)


def run_explain(arguments: argparse.Namespace) -> int:
    text = read_text(arguments.file)
    data = None if arguments.message is None else read_input(arguments.message)
    warning = None
    try:
        message = None
        if data is not None:
            media_type = arguments.media_type or media_type_of(arguments.message)
            message = read_publication(data, media_type, base=arguments.base)
        explanation = Matcher().explain(text, message)
        if arguments.schema is not None:
            warning = schema_check(arguments.schema).warning(text)
    except ProfileRefused as refused:
        if arguments.json:
            print_json({"file": arguments.file, **refused.facts()})
        print(f"onyx: {arguments.file}: {refused}", file=sys.stderr)
        return EXIT_DATA
    except (MessageRefused, DecodeError, MatchLimitExceeded) as refusal:
        print(f"onyx: {arguments.message}: {refusal}", file=sys.stderr)
        return EXIT_DATA
    except SchemaRefused as refusal:
        print(f"onyx: {arguments.schema}: {refusal}", file=sys.stderr)
        return EXIT_DATA
    code = EXIT_DATA if warning is not None and arguments.strict else EXIT_OK
    if arguments.json:
        print_json({**asdict(explanation), "warning": warning_object(warning)})
        return code
    print(explanation)
    if warning is not None:
        print(f"\nIt can match no message that follows {arguments.schema}\n{warning}")
    return code
