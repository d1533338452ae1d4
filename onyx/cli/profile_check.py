"""``onyx profile check``: are these profiles right, and can they match what follows a schema?"""

from __future__ import annotations

import argparse
import sys

from formats.allowed_content import read_allowed_content
from formats.errors import about
from formats.schema import what_is_unread
from onyx.cli.values import check_once, print_json, read_text, say_unread
from onyx.cli.verb import Subparsers, add_verb
from onyx.errors import EXIT_DATA, EXIT_OK
from onyx.schema_path import load_schema
from yfilter import ProfileRefused
from yfilter.graph.graph_query import unbound_variables
from yfilter.language.schema_check import SchemaCheck
from yfilter.matcher import check_profile

CHECK_EXAMPLES = """\
  onyx profile check storms.xq
  onyx profile check profiles/*.xq --schema orders.dtd --strict
  onyx profile check delays.xq --schema siri/xsd#siri.xsd
  echo '/order/item[prise < 20]' | onyx profile check - --schema orders.xsd
"""
SCHEMA_HELP = "warn of a step that no message valid against this DTD, XSD or RELAX NG has"


def add_check(subverbs: Subparsers) -> None:
    parser = add_verb(
        subverbs,
        "check",
        "check profiles without registering them",
        details="Each file is one profile; - is standard input. What is refused is shown with a\n"
        "caret under the place; exit code 65. A profile that can never match under the\n"
        "schema is warned of, the first impossible step with a caret. No network is needed.",
        examples=CHECK_EXAMPLES,
        run=run_check,
    )
    parser.add_argument("files", metavar="FILE|-", nargs="+", help="the text of a profile")
    parser.add_argument("--schema", metavar="PATH", help=SCHEMA_HELP)
    parser.add_argument("--strict", action="store_true", help="exit code 65 for a warning, too")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each file")


def run_check(arguments: argparse.Namespace) -> int:
    check_once(arguments.files)
    texts = [(name, read_text(name)) for name in arguments.files]
    schema = None if arguments.schema is None else schema_check(arguments.schema)
    refused = warned = 0
    for name, text in texts:
        try:
            check_profile(text)
        except ProfileRefused as refusal:
            refused += 1
            if arguments.json:
                print_json({"file": name, **refusal.fault.facts()})
            print(f"onyx: {name}: {refusal}", file=sys.stderr)
            continue
        warning = schema.warning(text) if schema is not None else None
        unbound = unbound_variables(text)
        warned += warning is not None or bool(unbound)
        for said in unbound:
            print(f"onyx: {name}: warning: {said}", file=sys.stderr)
        if arguments.json:
            print_json({"file": name, "warning": warning_object(warning)})
        elif warning is None:
            print(f"{name}: right")
        else:
            print(f"{name}: right, but it can match no message that follows {arguments.schema}:")
            print(warning)
    return EXIT_DATA if refused or (warned and arguments.strict) else EXIT_OK


def schema_check(name: str) -> SchemaCheck:
    """The check against a schema; SchemaRefused.  What of it is not there is printed."""
    with about(name):
        schema = load_schema(name)
        say_unread(name, what_is_unread(schema))
        return SchemaCheck(read_allowed_content(schema))


def warning_object(warning: ProfileRefused | None) -> dict[str, object] | None:
    return None if warning is None else {**warning.fault.facts(), "hint": warning.hint}
