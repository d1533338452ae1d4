"""``onyx provider``: catalogs of providers (ObjectGlobe, 2 and 2.2)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from formats.errors import Fault
from onyx.cli.network_option import add_network_choice
from onyx.cli.provider_serve import TAKES, run_serve
from onyx.cli.spark_options import add_spark_arguments, open_spark
from onyx.cli.values import check_known, counted, print_json, read_text, say, table
from onyx.cli.verb import JSON, NOTHING, Run, Subparsers, Takes, add_noun, add_verb
from onyx.data_directory import write_atomically
from onyx.errors import EXIT_DATA, EXIT_OK, UnreadableInput, UsageError, file_errors
from onyx.queries.catalog import VOCABULARY, Catalog
from onyx.queries.listing import listed
from registration.queries.compatibility import Compatibility
from registration.queries.providers import Market, Relation
from registration.spark.progress import Progress

DETAILS = """\
Providers offer relations, functions and machines to queries (onyx query). A catalog says
which there are, with schemas, statistics, cost models, prices, and the rules of who may use
them and where rows and code may go: RDF documents, in files or in a metadata cache.
docs/queries.md has the vocabulary."""

EXAMPLES = """\
  onyx provider check market.ttl
  onyx provider serve market.ttl A --credentials A.pem
  onyx provider list --catalog market.ttl --as ann
  onyx provider list --cache l1.onyx --json
  onyx provider measure --catalog market.ttl --machine A --out measured.ttl A.pictures
"""
CATALOG: dict[str, str | None] = {
    "--catalog FILE...": "RDF with what providers offer (of several, the later counts)",
    "--cache FILE": "a metadata cache with it (onyx metadata cache), behind the files",
}
SECRETS: dict[str, str | None] = {
    "--secret NAME=FILE...": "a secret for an old system, or for NAME@PROVIDER alone",
}
MEASURE: dict[str, str | None] = {
    "relations RELATION*": "as PROVIDER.RELATION (default: all of the files)",
    **CATALOG,
    **SECRETS,
    "--machine NAME =": "say memory, cores and MHz of this machine as those of a cycle provider",
    "--out FILE": "a catalog to give behind the others (default: standard output)",
}
AS: dict[str, str | None] = {
    "--as USER =": "as this user may use it (default: as one who does not show who they are)",
}


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(subparsers, "provider", details=DETAILS, examples=EXAMPLES)
    commands: tuple[tuple[str, str, Run, Takes], ...] = (
        (
            "check",
            "say what is wrong with catalogs, all together",
            run_check,
            {"files FILE...": "a catalog"},
        ),
        ("schema", "print the vocabulary of catalogs, in Turtle", run_schema, NOTHING),
        (
            "measure",
            "read relations here, and say their statistics in Turtle",
            run_measure,
            MEASURE,
        ),
        ("serve", "execute fragments of queries until it is interrupted", run_serve, TAKES),
        ("list", "show what there is for queries, and where", run_list, CATALOG | AS),
    )
    for name, summary, run, takes in commands:
        parser = add_verb(subverbs, name, summary, run, {**takes, **JSON})
        if run in (run_measure, run_serve):
            add_spark_arguments(parser)
        if run is run_serve:
            title = "network, whose registration service renews the certificate"
            add_network_choice(parser.add_argument_group(title))


@contextmanager
def catalog_of(arguments: argparse.Namespace) -> Iterator[Catalog]:
    """The catalog that CATALOG names."""
    if arguments.cache is None:
        if not arguments.catalog:
            raise UsageError("give --catalog FILE, or --cache FILE")
        yield Catalog.read(*arguments.catalog)
        return
    # PERF: a catalog of files needs no SQLite.
    from onyx.metadata.cache import MetadataCache  # noqa: PLC0415

    if not Path(arguments.cache).is_file():
        raise UnreadableInput(f"there is no cache {arguments.cache}")
    with MetadataCache(arguments.cache) as cache:
        yield Catalog.of(cache, *arguments.catalog)


def secrets_of(arguments: argparse.Namespace) -> dict[str, str]:
    """The texts that SECRETS names, without the end of their last lines."""
    return {name: read_text(file).rstrip("\r\n") for name, file in arguments.secret}


def run_check(arguments: argparse.Namespace) -> int:
    catalog = Catalog.unchecked(*arguments.files)
    faults = catalog.faults()
    for fault in faults:
        _tell_fault(arguments, fault)
    market = catalog.market
    counts = {
        "relations": len(market.relations),
        "functions": len(market.functions),
        "cycle_providers": len(market.cycle_providers),
        "rules": len(market.permissions) + len(market.flows),
    }
    if arguments.json:
        print_json({**counts, "faults": len(faults)})
    else:
        words = [counted(count, name[:-1].replace("_", " ")) for name, count in counts.items()]
        say(f"{', '.join(words)}; {counted(len(faults), 'fault')}")
    return EXIT_DATA if faults else EXIT_OK


def _tell_fault(arguments: argparse.Namespace, fault: Fault) -> None:
    if arguments.json:
        print_json(fault.facts())
    else:
        print(fault if not fault.hint else f"{fault}\n    {fault.hint}", flush=True)


def run_schema(arguments: argparse.Namespace) -> None:
    _print_turtle(arguments, VOCABULARY.read_text(encoding="utf-8"))


def _print_turtle(arguments: argparse.Namespace, text: str) -> None:
    if arguments.json:
        print_json({"turtle": text})
    else:
        print(text, end="", flush=True)


def run_measure(arguments: argparse.Namespace) -> None:
    from onyx.queries.measuring import HEAD, machine_turtle  # noqa: PLC0415 - loads Spark
    from onyx.queries.secrets import relation_with  # noqa: PLC0415 - loads cryptography

    with catalog_of(arguments) as catalog:
        market = catalog.market
    named = {each.name: each for each in market.relations.values()}
    names = arguments.relations or [] if arguments.machine else [*named]
    known = [named[check_known(each, named, what="relation")] for each in names]
    secrets = secrets_of(arguments)
    chosen = [relation_with(each, secrets, market.client) for each in known]
    sites = {each.name: each for each in market.sites}
    found = [HEAD]
    if arguments.machine:
        name = check_known(arguments.machine, sites, "--machine", "cycle provider")
        found.append(machine_turtle(sites[name]))
    if chosen:
        found += _measured(arguments, market, chosen)
    text = "\n".join(found)
    if arguments.out is None:
        _print_turtle(arguments, text)
        return
    with file_errors(arguments.out):
        write_atomically(arguments.out, text.encode(), mode=0o644)


def _measured(
    arguments: argparse.Namespace, market: Market, relations: Sequence[Relation]
) -> Iterator[str]:
    """In Turtle; a relation that cannot be read is told, and left out."""
    import onyx.spark  # noqa: PLC0415 - loads Spark
    from onyx.queries.functions import FunctionStore  # noqa: PLC0415
    from onyx.queries.measuring import measured  # noqa: PLC0415

    with (
        TemporaryDirectory() as folder,
        open_spark(arguments, "provider measure") as (session, tell),
    ):
        onyx.spark.register(session)
        store = FunctionStore(Path(folder))
        for each in relations:
            tell(Progress(each.name))
            wrapper = market.functions.get(each.wrapper or "")
            try:
                work = None
                if wrapper is not None:
                    owner = market.function_providers[wrapper.provider]
                    work = store.load(wrapper, owner).work(wrapper)
                yield measured(session, each, work).turtle()
            except Exception as error:
                say(f"{each.name} cannot be read: {str(error).strip().splitlines()[0]}")


def run_list(arguments: argparse.Namespace) -> None:
    with catalog_of(arguments) as catalog:
        market = catalog.market
        for fault in catalog.faults():
            say(f"left out: {fault}")
    may = Compatibility(market, getattr(arguments, "as"))
    for kind, rows in listed(market, may).items():
        if arguments.json:
            for row in rows:
                print_json({"entry": kind, **row})
        elif rows:
            heading = [kind.upper(), *(name.upper() for name in list(rows[0])[1:])]
            print(table(heading, [[*map(_cell, row.values())] for row in rows]), end="\n\n")


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return ", ".join(value) or "-" if isinstance(value, list) else value
