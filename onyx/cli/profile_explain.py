"""``onyx profile explain``: what becomes of a profile, and on a message, what held."""

from __future__ import annotations

import argparse
import sys
from typing import TypeAlias

from formats.errors import MessageRefused, SchemaRefused
from formats.text import parse_text
from onyx.cli.profile_check import SCHEMA_HELP, schema_check, warning_object
from onyx.cli.values import print_json, read_input, read_text
from onyx.cli.verb import Subparsers, add_verb, set_run
from onyx.errors import EXIT_DATA, EXIT_OK
from yfilter import ProfileRefused, parse_profile
from yfilter.explanation import Explanation, Trial, explain, try_on

EXAMPLES = """\
  onyx profile explain storms.xq
  onyx profile explain storms.xq --message warning.xml
  echo '//item[2]' | onyx profile explain - --json
"""

_Object: TypeAlias = dict[str, object]


def add_explain(verbs: Subparsers) -> None:
    parser = add_verb(
        verbs,
        "explain",
        "show how a profile is matched and routed",
        details="What the index serves, what is evaluated on each element that the index finds,\n"
        "what is left to the end, and the routing query. On a message: which parts held, and\n"
        "the first that did not. No network is needed.",
        examples=EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE|-", help="the text of a profile")
    parser.add_argument("--message", metavar="FILE", help="a message to try it on")
    parser.add_argument("--schema", metavar="FILE", help=SCHEMA_HELP)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    set_run(parser, run_explain)


def run_explain(arguments: argparse.Namespace) -> int:
    text = read_text(arguments.file)
    try:
        profile = parse_profile(text)
    except ProfileRefused as refused:
        if arguments.json:
            print_json({"file": arguments.file, "code": refused.code, "reason": refused.reason})
        print(f"onyx: {arguments.file}: {refused}", file=sys.stderr)
        return EXIT_DATA
    explanation = explain(profile)
    trial = None
    if arguments.message is not None:
        try:
            trial = try_on(profile, parse_text(read_input(arguments.message)))
        except MessageRefused as refusal:
            print(f"onyx: {arguments.message}: {refusal}", file=sys.stderr)
            return EXIT_DATA
    warning = None
    if arguments.schema is not None:
        try:
            warning = schema_check(arguments.schema).warning(text)
        except SchemaRefused as refusal:
            print(f"onyx: {arguments.schema}: {refusal}", file=sys.stderr)
            return EXIT_DATA
    if arguments.json:
        print_json({**_as_object(explanation, trial), "warning": warning_object(warning)})
        return EXIT_OK
    print("\n".join(_lines(explanation, trial)))
    if warning is not None:
        print(f"\nIt can match no message that follows {arguments.schema}\n{warning}")
    return EXIT_OK


def _as_object(explanation: Explanation, trial: Trial | None) -> _Object:
    found: _Object = {
        "matching_path": explanation.matching_path,
        "linear_paths": list(explanation.linear_paths),
        "indexed": list(explanation.indexed),
        "residual": list(explanation.residual),
        "remainder": explanation.remainder,
        "routing_query": [list(disjunct) for disjunct in explanation.routing_query],
    }
    if trial is not None:
        found["message"] = {
            "parts": [{"part": part, "selected": count} for part, count in trial.parts],
            "first_failure": trial.first_failure,
            "results": trial.results,
        }
    return found


def _lines(explanation: Explanation, trial: Trial | None) -> list[str]:
    lines = ["Matching path", f"  {explanation.matching_path}"]
    lines += _section("Linear paths, found by the automaton", explanation.linear_paths)
    lines += _section("Conditions that the index selects by", explanation.indexed)
    lines += _section("Conditions evaluated on each element found", explanation.residual)
    if explanation.remainder:
        lines += ["", "Evaluated at the end", f"  {explanation.remainder}"]
    lines += ["", "Routing query"]
    for number, disjunct in enumerate(explanation.routing_query):
        lines.append(f"  {'or ' if number else ''}" + "\n     and ".join(disjunct))
    if trial is not None:
        width = max((len(part) for part, _ in trial.parts), default=0)
        lines += ["", "On the message"]
        lines += [f"  {part:<{width}}  {count}" for part, count in trial.parts]
        if trial.first_failure:
            lines.append(f"  the first that does not hold: {trial.first_failure}")
        lines.append(f"  results: {trial.results}")
    return lines


def _section(heading: str, lines: tuple[str, ...]) -> list[str]:
    return ["", heading, *(f"  {line}" for line in lines)] if lines else []
