"""``onyx profile``: say what a user wants, and see what becomes of it."""

from __future__ import annotations

import argparse
import re
from dataclasses import asdict
from functools import partial
from pathlib import Path

from msgspec import to_builtins
from msgspec.structs import replace

from formats.allowed_content import read_allowed_content
from formats.errors import DecodeError, MessageRefused, about
from formats.media_types import media_type_of
from formats.publication import read_publication
from formats.schema import what_is_unread
from onyx.cli.asking import (
    Told,
    add_command,
    add_commands,
    add_fields,
    ask,
    ask_all,
    columns_of,
    settings_said,
)
from onyx.cli.network_option import add_client_arguments, registration_address
from onyx.cli.profile_bulk import (
    FILE_OF_MANY,
    MANY_DETAILS,
    RESUME_DETAILS,
    STRICT_HELP,
    add_many,
    remove_many,
    tell_warned,
    the_file,
    update_many,
)
from onyx.cli.values import (
    BASE,
    LOCATION_HELP,
    MEDIA_TYPE,
    check_once,
    counted,
    print_json,
    read_input,
    read_text,
    say,
    say_unread,
    tell_of,
)
from onyx.cli.verb import Subparsers, add_arguments, add_noun, add_verb
from onyx.clients import LIVE_SECONDS, User, user_name
from onyx.errors import (
    EXIT_DATA,
    EXIT_OK,
    EXIT_UNAVAILABLE,
    ProfileNotAccepted,
    ProfilesNotAccepted,
    UsageError,
)
from onyx.rule_sets import ImportedRules, import_rules, read_rule_set
from onyx.schema_path import load_schema
from overlay import verbs
from overlay.answers import ProfileInfo
from overlay.delivery_policy import USUAL, DeliveryPolicy
from overlay.settings import ProfileSettings, settings_of
from yfilter import (
    Conjunction,
    LinkTarget,
    Matcher,
    MatchLimitExceeded,
    ProfileRefused,
    parse_profile,
    routing_query,
)
from yfilter.graph.graph_query import is_graph_query, unbound_variables
from yfilter.language.namespaces import ShortNames
from yfilter.language.query_parser import prefixes_of
from yfilter.language.schema_check import SchemaCheck
from yfilter.matcher import check_profile
from yfilter.plan_graph import NODES_MAX
from yfilter.schematron import RuleSet

# -------------------------------------------------------------------------------------------------
# ``onyx profile check``: are these profiles right, and can they match what follows a schema?


CHECK_EXAMPLES = """\
  onyx profile check storms.xq
  onyx profile check profiles/*.xq --schema orders.dtd --strict
  onyx profile check delays.xq --schema siri/xsd#siri.xsd
  echo '/order/item[prise < 20]' | onyx profile check - --schema orders.xsd
"""
TEXTS = {"files FILE|-...": "the text of a profile"}
SCHEMA_HELP = "warn of a step that no message valid against this DTD, XSD or RELAX NG has"


SCHEMA = {"--schema PATH": SCHEMA_HELP, "--strict": "exit code 65 for a warning, too"}
CHECK_DETAILS = """\
Each file is one profile; - is standard input. What is refused is shown with a
caret under the place; exit code 65. A profile that can never match under the
schema is warned of, the first impossible step with a caret. No network is needed."""


def add_check(subverbs: Subparsers) -> None:
    takes = {
        **TEXTS,
        **SCHEMA,
        "--json": "print one JSON object for each file",
    }
    summary = "check profiles without registering them"
    add = partial(add_verb, subverbs, "check", summary, run_check, takes)
    add(details=CHECK_DETAILS, examples=CHECK_EXAMPLES)


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
            say(f"{name}: {refusal}")
            continue
        warning = schema.warning(text) if schema is not None else None
        unbound = unbound_variables(text)
        warned += warning is not None or bool(unbound)
        for said in unbound:
            say(f"{name}: warning: {said}")
        told = f"{name}: right"
        if warning is not None:
            told += f", but it can match no message that follows {arguments.schema}:\n{warning}"
        tell_of(arguments, {"file": name, "warning": warning_object(warning)}, told)
    return EXIT_DATA if refused or (warned and arguments.strict) else EXIT_OK


def schema_check(name: str) -> SchemaCheck:
    """The check against a schema; SchemaRefused.  What of it is not there is printed."""
    with about(name):
        schema = load_schema(name)
        say_unread(name, what_is_unread(schema))
        return SchemaCheck(read_allowed_content(schema))


def warning_object(warning: ProfileRefused | None) -> dict[str, object] | None:
    return None if warning is None else {**warning.fault.facts(), "hint": warning.hint}


# -------------------------------------------------------------------------------------------------
# ``onyx profile explain``: what becomes of a profile, and on a message, what held.


EXPLAIN_EXAMPLES = """\
  onyx profile explain storms.xq
  onyx profile explain storms.xq --message warning.xml
  onyx profile explain fog.rq --message posts.ttl
  echo '//item[2]' | onyx profile explain - --json
"""


EXPLAIN_DETAILS = """\
By what the engine finds it, its steps and conditions, what is left to the end,
and the routing query. On a message: on which elements each part held, and the first
that did not. No network is needed."""


def add_explain(subverbs: Subparsers) -> None:
    takes = {
        "file FILE|-": "the text of a profile",
        "--message FILE": "a message to try it on",
        **MEDIA_TYPE,
        **BASE,
        **SCHEMA,
        "--json": "print one JSON object",
    }
    summary = "show how a profile is matched and routed"
    add = partial(add_verb, subverbs, "explain", summary, run_explain, takes)
    add(details=EXPLAIN_DETAILS, examples=EXPLAIN_EXAMPLES, kinds={"message": str})


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
            print_json({"file": arguments.file, **refused.fault.facts()})
        with about(arguments.file):
            raise
    except (MessageRefused, DecodeError, MatchLimitExceeded):
        with about(arguments.message):
            raise
    code = EXIT_DATA if warning is not None and arguments.strict else EXIT_OK
    names = ShortNames(prefixes_of(text))
    text = names.whole(str(explanation.renamed(names.short)))
    if warning is not None:
        text += f"\n\nIt can match no message that follows {arguments.schema}\n{warning}"
    tell_of(arguments, {**asdict(explanation), "warning": warning_object(warning)}, text)
    return code


# -------------------------------------------------------------------------------------------------
# ``onyx profile import``: a profile for each assertion of a Schematron rule set.


IMPORT_EXAMPLES = """\
  onyx profile import rules.sch --dry-run
  onyx profile import rules.sch --user audit
  onyx profile import rules.sch --phase codes --skip-bad --prune
"""
_NAME = re.compile(r"[\w.-]+")
_LABEL = re.compile(r'(?<=label=")(?:[^"\\]|\\.)*')  # of DOT


IMPORT_DETAILS = """\
Whoever takes the results gets what each message fails: the assertion's id, the
place, and the text with its values filled in, as SVRL says it. The same file again
changes nothing; an assertion that has changed replaces its profile. What cannot be
taken is named with its line and the reason, and then nothing is registered; exit
code 65 (--skip-bad: leave it out)."""


def add_import(subverbs: Subparsers) -> None:
    takes = {
        "file FILE": "a Schematron schema (ISO/IEC 19757-3)",
        "--name NAME": "of the rule set (default: the file's, without .sch)",
        "--phase ID": "only patterns of this phase (#ALL: all, default: its own)",
        "--top FOLDER": "where the files are that it may include (default: its own folder, and "
        "below)",
        "--with FILE...": "a code list that rules read by doc() or document()",
        "--skip-bad": "leave out what cannot be taken",
        "--prune": "remove profiles of assertions that are gone",
        "--dry-run": "print the profiles, without a network",
        "--strict": STRICT_HELP,
        "--user NAME": "whose they are (default: yours)",
        "--timeout SECONDS": "end with exit code 69 where they are not live after so long",
    }
    summary = "register a profile for each assertion of a Schematron rule set"
    parser = add_verb(
        *(subverbs, "import", summary, run_import, takes),
        details=IMPORT_DETAILS,
        examples=IMPORT_EXAMPLES,
    )
    add_client_arguments(parser)


async def run_import(arguments: argparse.Namespace) -> int:
    file: Path = arguments.file
    name = file.stem if arguments.name is None else arguments.name
    if not _NAME.fullmatch(name):
        raise UsageError(f"the name is {name!r}; expected letters, digits, '.', '-' and '_'")
    rules = read_rule_set(file, arguments.phase, arguments.top, getattr(arguments, "with"))
    for refused in rules.refused:
        say(str(refused))
    if arguments.dry_run:
        for each in rules.profiles:
            names = ("line", "role", "context", "test", "text")
            facts = {name: getattr(each, name) for name in names}
            text = f"(: {each.file}, line {each.line}: {each.key} :)\n{each.text}\n"
            tell_of(arguments, {"assertion": each.key, **facts}, text)
    say(_summary(rules))
    if rules.refused and not arguments.skip_bad:
        if not arguments.dry_run:
            why = "so nothing was registered (--skip-bad: leave them out)"
            say(f"{arguments.file}: some assertions cannot be taken, {why}")
        return EXIT_DATA
    if arguments.dry_run:
        return EXIT_OK
    whose = _whose(arguments)

    try:
        async with User(registration_address(arguments), whose) as user:
            done = await import_rules(
                user, name, rules, prune=arguments.prune, timeout_seconds=arguments.timeout
            )
    except ProfilesNotAccepted as refusal:
        say(f"{arguments.file}: {refusal}")
        return EXIT_DATA
    _print_done(arguments, done)
    if done.warnings and arguments.strict:
        return EXIT_DATA
    return EXIT_UNAVAILABLE if done.missing else EXIT_OK


def _summary(rules: RuleSet) -> str:
    """``312 of 319 assertions can be taken; 7 not: BR-1, BR-2, …``."""
    said = f"{len(rules.profiles)} of {counted(rules.total, 'assertion')} can be taken"
    if rules.refused:
        named = ", ".join(each.key for each in rules.refused[:8])
        more = ", …" if len(rules.refused) > 8 else ""
        said += f"; {len(rules.refused)} not: {named}{more}"
    return said


def _print_done(arguments: argparse.Namespace, done: ImportedRules) -> None:
    removed = "removed" if arguments.prune else "gone"
    kinds = {"added": done.added, "changed": done.changed, "same": done.same, removed: done.gone}
    for kind, profiles in kinds.items():
        for key, profile in profiles.items():
            warnings = list(done.warnings.get(key, ()))
            for warning in warnings:
                say(f"{key}: warning: {warning}")
            said = {"warnings": warnings} if warnings else {}
            facts = {"assertion": key, "id": profile, "was": kind, **said}
            tell_of(arguments, facts, f"{profile} {kind} {key}")
    told = ", ".join(f"{len(profiles)} {kind}" for kind, profiles in kinds.items() if profiles)
    say(told or "no assertions")
    if done.gone and not arguments.prune:
        say("profiles of assertions that are gone stay (--prune)")
    tell_warned(len(done.warnings))
    if done.missing:
        say(f"{', '.join(done.missing)} not reached in time")


# -------------------------------------------------------------------------------------------------
# ``onyx profile plan``: what the engine makes of some profiles together.


PLAN_EXAMPLES = """\
  onyx profile plan storms.xq floods.xq
  onyx profile plan profiles/*.xq --dot | dot -Tsvg > plan.svg
  onyx profile plan storms.xq --link north=floods.xq --link south=storms.xq
"""


def add_plan(subverbs: Subparsers) -> None:
    takes = {
        **TEXTS,
        "--link NAME=FILE...": "the routing query of a profile, for messages that go over this "
        "link",
        "--json": "print it as one JSON object",
        "--dot": "print a graph in DOT, which Graphviz draws (dot -Tsvg)",
        f"--nodes-max N = {NODES_MAX}": "show so many nodes, and how many more there are (default: "
        "%(default)s)",
    }
    summary = "show the shared plan that the engine makes of profiles"
    add_verb(
        *(subverbs, "plan", summary, run_plan, takes),
        details="The trie of the index, with what it leads to, and the operators; what\n"
        "profiles have in common is there once. No network is needed.",
        examples=PLAN_EXAMPLES,
    )


def run_plan(arguments: argparse.Namespace) -> None:
    files = dict.fromkeys(arguments.files)
    routes = dict.fromkeys(arguments.link)
    check_once([*files, *(name for _, name in routes)])
    matcher = Matcher()
    for name in files:
        with about(name):
            matcher.add(read_text(name), name)
    wanted: dict[tuple[Conjunction, LinkTarget], None] = {}
    for link, name in routes:
        with about(name):
            for conjunction in routing_query(parse_profile(read_text(name))):
                wanted[conjunction, LinkTarget("any root broker", link)] = None
    for conjunction, target in wanted:
        matcher.add_route(conjunction, target)
    nodes_max = arguments.nodes_max
    plan = matcher.dump_graphviz(nodes_max) if arguments.dot else matcher.dump(nodes_max)
    known = [prefixes_of(read_text(name)) for name in files if name != "-"]
    shared = {
        prefix: uri
        for prefixes in known
        for prefix, uri in prefixes.items()
        if prefix or all(each[""] == uri for each in known if "" in each)
    }
    names = ShortNames(shared)
    if arguments.dot:
        shown = _LABEL.sub(lambda label: names.short(label[0]), plan)
        shown += "".join(f"// {line}\n" for line in names.declared())
    else:
        shown = names.whole(plan)
    tell_of(arguments, {"plan": plan}, shown)


PROFILE_HELP = "its id, its key or USER/KEY"

# -------------------------------------------------------------------------------------------------
# ``onyx profile policy``, and the same options of ``onyx profile add``: how what waits is kept.


POLICY_DETAILS = """\
What a user does not take waits for them at the profile's host broker. Of what is too much
the oldest goes; --when-full drop-newest keeps what waits and nothing more, and disconnect
sends whoever takes the profile away first. What went is counted (onyx dead list).

Who takes a profile with --share may reject a delivery (onyx subscribe --exec): it is given
out again after --retry seconds, --attempts times in all; then it is a dead letter, which
onyx dead replay delivers again."""

POLICY_EXAMPLES = """\
  onyx profile policy p1
  onyx profile policy p1 --ttl 60                      nothing that is older than a minute
  onyx profile policy p1 --max-deliveries 1000 --when-full drop-newest
  onyx profile policy p1 --attempts 3 --retry 30
  onyx profile policy p1 --usual
"""


def add_policy(subverbs: Subparsers) -> None:
    parser = add_verb(
        *(subverbs, "policy", "show or change how what waits for a profile is kept", run),
        {"profile PROFILE": PROFILE_HELP},
        details=f"{POLICY_DETAILS}\n\nWhat is not named stays; without options it is shown.",
        examples=POLICY_EXAMPLES,
    )
    add_policy_arguments(parser)
    add_arguments(parser, {"--usual": "as if nothing had been said"})
    add_client_arguments(parser)


def add_policy_arguments(parser: argparse.ArgumentParser) -> None:
    add_fields(parser.add_argument_group("how what waits is kept"), DeliveryPolicy)


def policy_said(arguments: argparse.Namespace, base: DeliveryPolicy = USUAL) -> DeliveryPolicy:
    """What the options say, the rest as in ``base``."""
    return replace(base, **settings_said(arguments, DeliveryPolicy))


async def run(arguments: argparse.Namespace) -> None:
    async with User(registration_address(arguments)) as client:
        base = await client.policy(arguments.profile)
        policy = policy_said(arguments, USUAL if arguments.usual else base)
        if policy != base:
            await client.set_policy(arguments.profile, policy)
    facts = {"profile": arguments.profile, "policy": to_builtins(policy)}
    tell_of(arguments, facts, sentence(policy))


def sentence(policy: DeliveryPolicy) -> str:
    """For people."""
    bounds = []
    if policy.bytes_max:
        bounds.append(f"at most {policy.bytes_max:,} bytes wait")
    if policy.deliveries_max:
        bounds.append(f"at most {policy.deliveries_max:,} deliveries wait")
    if policy.ttl_s:
        bounds.append(f"none longer than {policy.ttl_s:,} s")
    waiting = ", ".join(bounds) or "as much waits as the network allows"
    times = "once" if policy.attempts_max == 1 else f"{policy.attempts_max} times"
    return (
        f"{waiting}; when that is full: {policy.when_full}; what is rejected is given out {times} "
        f"in all, every {policy.retry_s:,} s"
    )


# -------------------------------------------------------------------------------------------------
# ``onyx profile why-not``: why a registered profile does not match a message.


WHY_NOT_EXAMPLES = """\
  onyx profile why-not p1 report.xml
  cat report.xml | onyx profile why-not p1 - --json
"""


def add_why_not(subverbs: Subparsers) -> None:
    takes = {"profile PROFILE": PROFILE_HELP, "message MESSAGE|-": "the file of the message"}
    parser = add_verb(
        *(subverbs, "why-not", "say why a profile does not match a message", run_why_not),
        takes | MEDIA_TYPE | BASE,
        details="Names the first part that does not hold: without it, and what comes after it,\n"
        "the profile would match.",
        examples=WHY_NOT_EXAMPLES,
    )
    add_client_arguments(parser)


async def run_why_not(arguments: argparse.Namespace) -> None:
    data = read_input(arguments.message)
    media_type = arguments.media_type or media_type_of(arguments.message)
    text = (await ask(arguments, verbs.ProfileShow(profile=arguments.profile))).text or ""
    with about(arguments.message):
        explanation = Matcher().explain(
            text, read_publication(data, media_type, base=arguments.base)
        )
    failure = explanation.failure
    failed = None if failure is None else asdict(failure)
    facts = {"profile": arguments.profile, "matched": not failed, "failure": failed}
    names = ShortNames(prefixes_of(text))
    text = f"{arguments.profile} matches it"
    if failure is not None:
        text = (
            f"{arguments.profile} does not match it: {failure.text} does not hold\n"
            f"  nothing is  {failure.statement}"
        )
        if failure.before and failure.before != failure.statement:
            text += f"\n  there is    {failure.before}  {', '.join(failure.positions)}".rstrip()
        if failure.hint:
            text += f"\n  hint        {failure.hint}"
    tell_of(arguments, facts, names.whole(text))


ADD_EXAMPLES = """\
  onyx profile add storms.xq --wait
  onyx profile add storms.xq --key storms
  echo '//item[price < 100]' | onyx profile add - --user ada
  onyx profile add profiles/*.xq --user ada --location 47.61,-122.33
  onyx profile add fog.rq --wait                  of graphs: SPARQL
  onyx profile add population.jsonl
  onyx profile add queries.txt --lines --skip-bad > ids.txt
"""

OTHER_EXAMPLES = """\
  onyx profile show p1
  onyx profile list --user ada
  onyx profile update p1 storms.xq --wait
  onyx profile remove p1 p2
  onyx profile remove ids.txt --lines
"""

WAIT_HELP = "return only when it is live: no message published afterwards is missed"
WARNED_DETAILS = "Where the schemas of all sources say that it can never match there is a warning."
KEY_HELP = "a name of yours for it: while it is there, to add it again is to find it"
REFUSED_DETAILS = "A profile that is refused is shown with a caret under the place; exit code 65."


GONE_HELP = "return only when no broker keeps its interest any more"
UPDATE_DETAILS = f"""\
When the new text is refused the old one stays in force.
{REFUSED_DETAILS}
{WARNED_DETAILS}

A FILE alone changes many profiles: it is named .jsonl, or with --lines has an id and a text
a line. To do it again changes nothing.
{MANY_DETAILS}"""
ADDED = {
    "--resume KEY": "go on with a file that was cut off",
    **TEXTS,
    "--user NAME": "whose it is (default: yours)",
    "--location LAT,LON": LOCATION_HELP,
    "--key KEY =": KEY_HELP,
}
LISTED = ("id", "user", "host", "address", "version", "live", *columns_of(ProfileSettings))
UPDATED = {"profile PROFILE|FILE": PROFILE_HELP, "file [FILE|-]": "the new text"}


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(
        subparsers,
        "profile",
        details="A profile is a query in XQuery: a path, or for ... where ... return; or, of\n"
        "graphs, in SPARQL: SELECT, CONSTRUCT or ASK. Every message that it matches is\n"
        "delivered in the form that it asks for (onyx subscribe).",
        examples=ADD_EXAMPLES + OTHER_EXAMPLES,
    )
    add = add_command(
        *(subverbs, verbs.ProfileAdd),
        run=run_add,
        takes=FILE_OF_MANY | ADDED | wait(WAIT_HELP) | {"--strict": STRICT_HELP},
        but=("text", "policy"),
        details="Each file is one profile; - is standard input. Prints its id.\n"
        f"{REFUSED_DETAILS}\n{WARNED_DETAILS}\n\n"
        "A FILE named .jsonl, or any with --lines, has a profile a line.\n"
        f"{MANY_DETAILS}\n{RESUME_DETAILS}\n\n{POLICY_DETAILS}",
        examples=ADD_EXAMPLES,
    )
    add_policy_arguments(add)
    show = partial(add_command, subverbs, verbs.ProfileShow, Told(_with_text))
    show(examples="  onyx profile show p1")
    add_command(
        *(subverbs, verbs.ProfileList, Told(columns=LISTED, line=_without_text), None),
        {"--user NAME": "only those of this user"},
        but=("after", "texts", "skip"),
        examples="  onyx profile list --user ada\n  onyx profile list --search nitf --sort host",
    )
    export = add_verb(
        *(subverbs, "export", "print all profiles with their texts, one JSON object a line"),
        run_export,
        details="What onyx plan make reads as .jsonl.",
        examples="  onyx profile export > catalog.jsonl",
    )
    update = add_verb(
        *(subverbs, "update", "replace the text of a profile", run_update),
        UPDATED | FILE_OF_MANY | wait(WAIT_HELP) | {"--strict": STRICT_HELP},
        details=UPDATE_DETAILS,
        examples="  onyx profile update p1 storms.xq --wait\n  onyx profile update new.jsonl\n"
        "  onyx profile update new.txt --lines",
    )
    for parser in (export, update):
        add_client_arguments(parser)  # of export --json, which it does anyway
    add_commands(subverbs, "profile", told={verbs.ProfileSet: Told(_sentence)})
    add_policy(subverbs)
    add_import(subverbs)
    add_check(subverbs)
    add_explain(subverbs)
    add_why_not(subverbs)
    add_plan(subverbs)
    remove = add_verb(
        *(subverbs, "remove", "remove profiles", run_remove),
        {"profiles PROFILE|FILE...": PROFILE_HELP, **FILE_OF_MANY, **wait(GONE_HELP)},
        details="Results that were not delivered yet are gone with the profile. A FILE named\n"
        ".jsonl, or any with --lines, names many profiles.\n"
        f"{MANY_DETAILS}",
        examples="  onyx profile remove p1 p2\n  onyx profile remove ids.txt --lines",
    )
    add_client_arguments(remove)


def wait(says: str) -> dict[str, str]:
    return {
        "--wait": says,
        "--timeout SECONDS": "with --wait: how long at most (default: 60, and exit code 69)",
    }


def _patience(arguments: argparse.Namespace) -> float:
    """With a change of one profile."""
    return LIVE_SECONDS if arguments.timeout is None else float(arguments.timeout)


def _whose(arguments: argparse.Namespace) -> str:
    if arguments.user is not None:
        return str(arguments.user)
    return user_name(registration_address(arguments))


async def run_add(arguments: argparse.Namespace) -> int:
    many = the_file(arguments, arguments.files)
    policy = policy_said(arguments)
    if many is not None:
        if policy != USUAL:
            raise UsageError("how profiles are kept is said of each file, not of one of many")
        if arguments.key:
            raise UsageError("--key is for one profile; of a file of many --resume is the key")
        return await add_many(arguments, many, _whose(arguments))
    if arguments.resume:
        raise UsageError("--resume is for a file of many profiles (--lines or .jsonl)")
    if arguments.key and len(arguments.files) > 1:
        raise UsageError("--key is for one profile")
    check_once(arguments.files)
    texts = [(name, read_text(name)) for name in arguments.files]
    user = _whose(arguments)

    refused = warned = late = 0
    async with User(registration_address(arguments), user) as client:
        for name, text in texts:
            try:
                profile = await client.add_profile(
                    text,
                    location=arguments.location,
                    wait=arguments.wait,
                    timeout_seconds=_patience(arguments),
                    key=arguments.key,
                    policy=policy,
                    **settings_said(arguments, ProfileSettings),
                )
            except ProfileNotAccepted as refusal:
                refused += 1
                _report_refusal(arguments, name, refusal)
            else:
                late += bool(profile.missing)
                warned += bool(profile.warnings)
                _report_profile(arguments, name, profile)
    refused += warned if arguments.strict else 0
    return EXIT_DATA if refused else EXIT_UNAVAILABLE if late else EXIT_OK


async def run_update(arguments: argparse.Namespace) -> int:
    if arguments.file is None:
        many = the_file(arguments, [arguments.profile])
        if many is None:
            raise UsageError(
                "expected the id of a profile and a FILE, or one FILE of many: named .jsonl, or "
                "with --lines, an id and a text a line"
            )
        return await update_many(arguments, many)
    if arguments.lines or arguments.skip_bad:
        raise UsageError("--lines and --skip-bad are for one FILE of many profiles, without an id")
    text = read_text(arguments.file)

    patience = {"wait": arguments.wait, "timeout_seconds": _patience(arguments)}
    async with User(registration_address(arguments)) as client:
        try:
            profile = await client.update_profile(arguments.profile, text, **patience)
        except ProfileNotAccepted as refusal:
            _report_refusal(arguments, arguments.file, refusal)
            return EXIT_DATA
    _report_profile(arguments, arguments.file, profile)
    if profile.warnings and arguments.strict:
        return EXIT_DATA
    return EXIT_UNAVAILABLE if profile.missing else EXIT_OK


def _with_text(profile: ProfileInfo) -> str:
    said = _sentence(profile)
    if profile.policy != USUAL:
        said += f"; {sentence(profile.policy)}"
    head = f"# {said}" if is_graph_query(profile.text or "") else f"(: {said} :)"
    return f"{head}\n{profile.text}"


def _without_text(profile: ProfileInfo) -> dict[str, object]:
    return {key: value for key, value in profile.shown().items() if key != "text"}


async def run_export(arguments: argparse.Namespace) -> None:
    for info in await ask_all(arguments, verbs.ProfileList(texts=True)):
        shown = {"user": info.user, "host": info.host, **settings_of(info, ProfileSettings)}
        print_json({"profile": info.id, **shown, "text": info.text})


async def run_remove(arguments: argparse.Namespace) -> int:
    many = the_file(arguments, arguments.profiles)
    if many is not None:
        return await remove_many(arguments, many)

    late = 0
    async with User(registration_address(arguments)) as client:
        for profile in arguments.profiles:
            missing = await client.remove_profile(
                profile, wait=arguments.wait, timeout_seconds=_patience(arguments)
            )
            late += bool(missing)
            facts = {"id": profile, "removed": True, "missing": missing}
            tell_of(arguments, facts, f"{profile} removed")
            if missing and not arguments.json:
                say(f"{', '.join(missing)} may still ask for it")
    return EXIT_UNAVAILABLE if late else EXIT_OK


def _report_profile(arguments: argparse.Namespace, name: str, profile: ProfileInfo) -> None:
    """The id alone on standard output, so that a script can take it."""
    tell_of(arguments, {"file": name, **profile.shown()}, profile.id)
    if not arguments.json:
        say(_sentence(profile))
        for warning in profile.warnings:
            say(f"{name}: warning: {warning}")


def _report_refusal(arguments: argparse.Namespace, name: str, refusal: ProfileNotAccepted) -> None:
    if arguments.json:
        said = {"code": refusal.code, "refusal": refusal.refusal, "reason": refusal.reason}
        print_json({"file": name, **refusal.fault.facts(), **said})
    say(f"{name}: {refusal}")


def _sentence(profile: ProfileInfo) -> str:
    whose = f" of {profile.user}" if profile.user else ""
    state = "live" if profile.live else "not live yet"
    if profile.missing:
        state += f": {', '.join(profile.missing)} not reached"
    return (
        f"profile {profile.id}{whose}, version {profile.version}, "
        f"hosted by {profile.host} at {profile.address}, {state}"
    )
