"""``onyx query``: a query over what many providers have (ObjectGlobe, 2.1)."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from onyx.cli.network_option import add_network_choice, context_of, registration_address
from onyx.cli.provider import AS, CATALOG, SECRETS, catalog_of, secrets_of
from onyx.cli.spark_options import SPARK_HELP, add_spark_arguments
from onyx.cli.values import STANDARD_INPUT, print_json, read_text, say, table, tell_of
from onyx.cli.verb import JSON, Subparsers, add_verb
from onyx.errors import EXIT_DATA, EXIT_OK, EXIT_SOFTWARE, EXIT_UNAVAILABLE, UsageError, file_errors
from registration.queries.quality import LIMITS, Quality

if TYPE_CHECKING:
    from onyx.queries.catalog import Catalog
    from onyx.queries.planning import QueryPlan
    from onyx.queries.published_rows import PublishedRows
    from onyx.queries.running import Run
    from onyx.queries.session import Session
    from onyx.spark.filtering import RowRefused
    from onyx.spark.network import Network

DETAILS = f"""\
The relations and functions of a catalog are named in Spark's SQL as PROVIDER.RELATION
and FUNCTION. The query is planned over the machines that the rules of the catalog allow,
and executed by these (onyx provider serve) and by this command, which prints the rows.

The plan is signed by --credentials; a user without them is anonymous, and gets what is
public. Limits (--limit, or --soft where they may be passed): {", ".join(LIMITS[:4])},
{", ".join(LIMITS[4:])}. docs/queries.md has more.

With --save the query is checked and becomes a relation of the catalog --out FILE.ttl, and
queries that have it name it in FROM.

With --secret a relation that says so is read with a password or the like of yours, which is
encrypted for the machine that reads it; with NAME@PROVIDER=FILE no other machine gets it.

With --standing the profiles by which the query reads archives become profiles of yours, whose
results onyx subscribe takes from now on.

With --publish each row is a message of a source of the network (--registration, --topology,
--context), once, however often the query is asked: as an element, or, of a result with
the column message, as that with its key, media_type and headers. Refused rows are named,
the others are published; exit code 65.

{SPARK_HELP}"""

EXAMPLES = """\
  onyx query 'SELECT title FROM A.R WHERE id < 10' --catalog market.ttl
  onyx query report.sql --catalog market.ttl --explain --svg report.svg
  onyx query report.sql --catalog market.ttl --limit cost=0.5 --soft seconds=60 --out r.parquet
  onyx query report.sql --catalog market.ttl --save mine.report --out mine.ttl
  onyx query 'SELECT * FROM mine.report' --catalog market.ttl --catalog mine.ttl
  onyx query "SELECT * FROM archive.wire(profile => '//storm')" --cache l1.onyx --standing
  onyx query report.sql --catalog market.ttl --publish reports --registration 127.0.0.1:7200
"""
PROGRESS_SECONDS = 2.0
PATH_MAX = 1_024  # characters; what is longer is no file


def add_parser(subparsers: Subparsers) -> None:
    takes = {
        "query SQL|FILE|-": "the query, or where it is",
        **CATALOG,
        **AS,
        "--explain": "show the query plan, and execute nothing",
        "--svg OUT.svg": "with --explain: also draw the plan, each provider in a colour",
        "--limit NAME=NUMBER...": "refuse or stop the query beyond it",
        "--soft NAME=NUMBER...": "a limit that may be passed, which is said then",
        "--out FILE": "write the rows into it: .parquet, .csv, .jsonl or .arrow",
        "--save PROVIDER.NAME": "write the query as a relation into --out FILE.ttl, a catalog",
        "--publish SOURCE": "publish the rows as this source, by its id or name",
        **SECRETS,
        "--standing": "register the profiles of the query as yours, before it reads archives",
        "--credentials FILE": "who asks, or the authority of the network for somebody anonymous",
        "--insecure": "cycle providers of this machine, without TLS and signatures",
        "--learn FILE": "Turtle with figures of scans: counts before estimates, written by runs",
        **JSON,
    }
    kinds = {"limit": str, "soft": str}
    parser = add_verb(
        *(subparsers, "query", "", run, takes), details=DETAILS, examples=EXAMPLES, kinds=kinds
    )
    add_network_choice(parser)
    add_spark_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.svg is not None and not arguments.explain:
        raise UsageError("--svg OUT.svg goes with --explain")
    if arguments.out is not None and arguments.publish is not None:
        raise UsageError("rows go into --out FILE, or to --publish SOURCE")
    sql, quality = _text(arguments.query), Quality.parse(arguments.limit, arguments.soft)
    with catalog_of(arguments) as catalog:
        if arguments.save is not None:
            return _save(arguments, catalog, sql)
        market = catalog.market_for(sql)
    if arguments.explain:
        from onyx.queries.planning import plan_query  # noqa: PLC0415 - no Spark

        learned = arguments.learn
        user = _user(arguments)
        if arguments.secret:
            from onyx.queries.secrets import where_allowed  # noqa: PLC0415 - cryptography

            market = where_allowed(market, secrets_of(arguments))
        _explain(arguments, plan_query(sql, market, user, quality, learned))
        return EXIT_OK
    from onyx.queries.session import Session  # noqa: PLC0415 - Spark and Flight take long to load
    from registration.queries.stopped import QueryStopped  # noqa: PLC0415
    from registration.spark.session import SparkOptions  # noqa: PLC0415

    with Session(
        market,
        user=getattr(arguments, "as"),
        credentials=arguments.credentials,
        insecure=arguments.insecure,
        options=SparkOptions(arguments.master, dict(arguments.conf)),
        learned=arguments.learn,
        secrets=secrets_of(arguments),
    ) as session:
        try:
            return _executed(arguments, session, session.plan(sql, quality))
        except QueryStopped as stopped:
            say(str(stopped))
            return EXIT_UNAVAILABLE if stopped.code == "provider-away" else EXIT_SOFTWARE


def _text(given: str) -> str:
    is_file = given == STANDARD_INPUT or (len(given) < PATH_MAX and Path(given).is_file())
    return read_text(given) if is_file else given


def _save(arguments: argparse.Namespace, catalog: Catalog, sql: str) -> int:
    from onyx.queries.saved import save_query  # noqa: PLC0415 - seldom

    if arguments.out is None:
        raise UsageError("--save PROVIDER.NAME needs --out FILE.ttl")
    columns = save_query(arguments.save, sql, catalog, arguments.out)
    shown = [f"{each.name} {each.type}".rstrip() for each in columns]
    facts = {"saved": arguments.save, "file": str(arguments.out), "columns": shown}
    tell_of(
        arguments, facts, f"{arguments.save} is a relation of {arguments.out}: {', '.join(shown)}"
    )
    return EXIT_OK


def _user(arguments: argparse.Namespace) -> str:
    if arguments.insecure or arguments.credentials is None:
        return str(getattr(arguments, "as"))
    from onyx.queries.identity import Identity  # noqa: PLC0415 - cryptography takes long to load

    return Identity.of(arguments.credentials).user


def _explain(arguments: argparse.Namespace, plan: QueryPlan) -> None:
    if arguments.json:
        print_json(plan.to_json())
    else:
        print(plan.explain())
    if arguments.svg is not None:
        from onyx.queries.plan_picture import plan_svg  # noqa: PLC0415 - seldom

        with file_errors(arguments.svg):
            arguments.svg.write_text(plan_svg(plan.root), encoding="utf-8")
    for passed in plan.passed:
        say(str(passed))


def _executed(arguments: argparse.Namespace, session: Session, plan: QueryPlan) -> int:
    for passed in plan.passed:
        say(str(passed))
    publishing = None if arguments.publish is None else _publishing(arguments, plan.sql)
    if arguments.standing:
        _stand(arguments, plan, session.user)
    found = session.run(plan)
    try:
        with _progress(arguments, found):
            _written(arguments, found, publishing)
    finally:
        _tell(arguments, found, publishing)
    if not found.complete:
        return EXIT_SOFTWARE
    return EXIT_DATA if publishing is not None and publishing.counts["refused"] else EXIT_OK


def _publishing(arguments: argparse.Namespace, sql: str) -> PublishedRows:
    from onyx.queries.published_rows import PublishedRows  # noqa: PLC0415 - clients of networks

    def tell(refused: RowRefused) -> None:
        if arguments.json:
            print_json(refused.fault.facts())
        say(str(refused))

    return PublishedRows(_network(arguments), arguments.publish, sql, tell)


def _stand(arguments: argparse.Namespace, plan: QueryPlan, user: str) -> None:
    from onyx.queries.standing import add_standing, standing_profiles  # noqa: PLC0415 - networks

    for text, registration in standing_profiles(plan.fragments).items():
        network = _network(arguments, registration)
        profile = add_standing(network, user, text)
        facts = {"standing": profile.id, "text": text, "live": profile.live}
        if arguments.json:
            print_json(facts)
        else:
            state = "" if profile.live else ", which is not live yet"
            say(f"{profile.id}{state} stands for {text}; take its results by onyx subscribe")


def _network(arguments: argparse.Namespace, usual: str = "") -> Network:
    """The network that the command line names, else the usual one, and who asks there."""
    from onyx.spark.network import Network  # noqa: PLC0415 - clients of networks

    credentials = arguments.credentials or context_of(arguments).credentials_file
    is_named = arguments.registration or arguments.topology or arguments.context
    where = usual if usual and not is_named else registration_address(arguments)
    return Network(where, str(credentials or ""))


def _written(arguments: argparse.Namespace, found: Run, publishing: PublishedRows | None) -> None:
    from onyx.queries.result_files import json_lines, plain, result_file  # noqa: PLC0415

    with ExitStack() as stack:
        if publishing is not None:
            stack.enter_context(publishing)
            for batch in found:
                publishing.write(batch)
        elif arguments.out is not None:
            write = stack.enter_context(result_file(arguments.out, found.schema))
            for batch in found:
                write(batch)
        elif arguments.json:
            for batch in found:
                sys.stdout.writelines(json_lines(batch))
                sys.stdout.flush()
        else:
            rows = [list(plain(row).values()) for batch in found for row in batch.to_pylist()]
            print(table(found.schema.names, rows))


@contextmanager
def _progress(arguments: argparse.Namespace, found: Run) -> Iterator[None]:
    """How far it is, on standard error, while it is at work."""
    is_over = threading.Event()

    def tell() -> None:
        while not is_over.wait(PROGRESS_SECONDS):
            if sys.stderr.isatty():
                say(f"{found.progress():.0%}")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _tell(arguments: argparse.Namespace, found: Run, publishing: PublishedRows | None) -> None:
    """The last line."""
    actual, bill, stopped = found.actual, found.bill, found.stopped
    published = None if publishing is None else dict(publishing.counts)
    if stopped is not None and stopped.code == "over-limit":
        say(str(stopped))
    if arguments.json:
        facts = {
            "rows": actual.rows,
            "complete": found.complete,
            "stopped": stopped.fault.facts() if stopped else None,
            "actual": asdict(actual),
            "bill": dict(bill),
        }
        print_json(facts if published is None else {**facts, "published": published})
        return
    parts = ", ".join(f"{uri} {money:.6g}" for uri, money in bill.items())
    said = (
        f"{actual.rows:,} rows in {actual.seconds:.1f} s, {actual.bytes_read:,} bytes read, "
        f"{actual.bytes_moved:,} moved"
    )
    say(f"{said}; cost {actual.cost:.6g} ({parts})" if parts else said)
    if published is not None:
        each = ", ".join(f"{count:,} {what}" for what, count in published.items())
        say(f"published by {arguments.publish}: {each}")
