"""``onyx metadata``: metadata that a provider keeps, and repositories cache by rules."""

from __future__ import annotations

import argparse
import logging
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from time import time
from typing import Any, TypeVar

import msgspec
import trio

from formats.graph.syntaxes import by_file_name
from onyx.background import background_tasks
from onyx.beside import heed, tell_ready
from onyx.cli.gateway import SERVED, listen_address, served_at, served_options
from onyx.cli.network_option import (
    add_client_arguments,
    log_reader,
    registration_address,
)
from onyx.cli.taxonomy import SYNTAXES, syntax_of
from onyx.cli.values import (
    STANDARD_INPUT,
    counted,
    print_json,
    read_input,
    read_text,
    say,
    table,
    tell_of,
)
from onyx.cli.verb import Subparsers, Takes, add_noun, add_verb
from onyx.data_directory import ROWS_FILE
from onyx.errors import EXIT_DATA, EXIT_OK, UnreadableInput, UsageError, UserError
from onyx.listening import bind
from onyx.logs import USUAL_LOGS, add_log_arguments, configure_logging
from onyx.metadata import MetadataCache, MetadataClient, MetadataProvider, MetadataRepository
from onyx.metadata.network_feed import NetworkFeed
from onyx.metadata.provider_process import run_provider
from onyx.metadata.remote_cache import PREFIXES, RemoteCache
from onyx.metadata.requests import SetAside, shown
from onyx.metadata.serving import Serving
from onyx.node_store import Opens, open_postgres, opened
from onyx.registration_client import RegistrationClient
from onyx.renewal import keep_shown_renewed
from overlay import verbs
from overlay.link.store import Store
from overlay.stores import SQLITE, TRIAL, check_store
from overlay.topology import TopologyError, load_topology, parse_topology
from registration.metadata.browsing import SHOWN
from registration.metadata.provider import Outcome
from registration.metadata.provider_reader import BATCH_MAX, portions

F = TypeVar("F", bound=Callable[..., Any])
log = logging.getLogger("onyx.process")

DETAILS = """\
A provider keeps RDF documents and rules of repositories; a repository caches what its rules
match, with all that this strongly refers to, and answers queries alone, also with all else
stopped. The provider publishes as a source of the network, and is asked through it.
docs/metadata.md has the model and the language of rules."""

EXAMPLES = """\
  onyx metadata serve mdv-data
  onyx metadata schema schema.ttl
  onyx metadata register doc.rdf --at http://example.org/doc.rdf
  onyx metadata sync http://example.org/ folder/ --dry-run --fail-if-lost
  onyx metadata rule L1 'search CycleProvider c register c where c.memory > 64'
  onyx metadata browse CycleProvider
  onyx metadata select L1 http://example.org/doc.rdf#host
  onyx metadata cache l1.onyx L1
  onyx metadata query l1.onyx 'search CycleProvider c select c, c.memory'
"""
PROVIDER = {"--provider NAME = metadata": "the source as which the provider publishes (metadata)"}
WAIT = {"--wait {all}": "until all providers that hold the same have it, a minute at most"}
DRY_RUN = {"--dry-run": "change nothing, and say what would be, by which rules"}
LOST = {"--fail-if-lost": "exit code 65 if a repository loses a resource by it"}
STORE = {
    f"--store URL = {SQLITE}": "a PostgreSQL server that keeps its documents, rules and messages"
}
CHANGES = WAIT | DRY_RUN | LOST | PROVIDER
OF_REPOSITORY = {"repository REPOSITORY": "its name"}
SYNTAX = {f"--syntax {{{','.join(SYNTAXES)}}}": "how it is written (default: by the file's name)"}


_COMMANDS: list[tuple[Callable[..., Any], Takes]] = []


def _command(takes: Takes) -> Callable[[F], F]:
    """A function ``run_NAME`` is a command; its summary is the function's text."""

    def added(run: F) -> F:
        _COMMANDS.append((run, takes))
        return run

    return added


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(subparsers, "metadata", details=DETAILS, examples=EXAMPLES)
    for run, takes in _COMMANDS:
        name, summary = run.__name__.removeprefix("run_"), (run.__doc__ or "").rstrip(".")
        summary = summary[:1].lower() + summary[1:]
        parser = add_verb(subverbs, name, summary, run, takes, kinds={"file": str, "files": str})
        if "--json" not in takes:
            add_client_arguments(parser)
        if run is run_serve:
            add_log_arguments(parser)
            for option in ("--ready-fd", "--lifeline-fd"):  # of onyx up
                parser.add_argument(option, type=int, help=argparse.SUPPRESS)


def _client(arguments: argparse.Namespace) -> MetadataClient:
    return MetadataClient(registration_address(arguments), arguments.provider)


@_command(
    {
        "directory DIR": "the directory that keeps everything",
        "--name NAME = metadata": "publish as the source of this name (metadata)",
        **STORE,
        "--with PROVIDER =": "a provider of several that hold the same, to be one of them",
        "--prefix PREFIX...": "be the home of documents whose URIs begin so",
        "--network": "provide what this network is, and take no documents of others",
        "--admin HOST:PORT": "where metrics are, plain HTTP",
    }
)
async def run_serve(arguments: argparse.Namespace) -> None:
    """Run a provider until it is interrupted."""
    address, name = registration_address(arguments), arguments.name
    logs, ready_fd, is_told = log_reader(arguments), arguments.ready_fd, False
    configure_logging(f"metadata/{name}", logs() or USUAL_LOGS)

    def tell(event: str, text: str, **facts: object) -> None:
        nonlocal is_told
        if ready_fd is None:
            tell_of(arguments, {"event": event, **facts}, f"{name} {text}")
        else:
            log.info("%s", text)
            if not is_told:
                tell_ready(ready_fd)
        is_told = True

    def waiting() -> None:
        if not is_told:
            tell("waiting", "waits to take the place of the other process")

    def ready(served: Serving) -> None:
        admin = _open_admin(nursery, arguments, served)
        source, revision = served.source.id, served.provider.revision
        text = f"({source}) serves revision {revision}"
        tell("serving", text, source=source, revision=revision, admin=admin)

    rows, member = await _rows(arguments), getattr(arguments, "with")
    if arguments.network and member:
        raise UsageError("a provider of the network takes no documents of others: leave out --with")
    serving: Any = partial(Serving, registration=address, member=member, prefixes=arguments.prefix)
    if arguments.network:
        serving = partial(NetworkFeed, address)
    async with background_tasks(trio.open_nursery()) as nursery:
        heed(nursery, logs, arguments.lifeline_fd)
        nursery.start_soon(keep_shown_renewed, address)
        place = Path(arguments.directory), name, rows, serving
        await run_provider(address, *place, waiting=waiting, ready=ready)


def _open_admin(nursery: trio.Nursery, arguments: argparse.Namespace, serving: Serving) -> str:
    """Where metrics are, "" for nowhere."""
    if arguments.admin is None:
        return ""
    # What a provider without an admin address need not load.
    from onyx.metadata.provider_metrics import ProviderMetrics  # noqa: PLC0415
    from onyx.telemetry.admin_server import open_admin  # noqa: PLC0415

    wanted = listen_address(arguments.admin, "--admin")
    nursery.start_soon(serving.look)
    metrics = ProviderMetrics(arguments.name, serving.counts)
    at = open_admin(nursery, wanted, metrics, lambda: "")
    say(f"metrics at http://{at}/metrics")
    return str(at)


async def _rows(arguments: argparse.Namespace) -> Opens:
    """The store of a provider; in a server it is that of a network, which is asked for its name."""
    store = arguments.store
    if store == SQLITE:
        return partial(Store, Path(arguments.directory) / ROWS_FILE)
    if store == TRIAL:
        raise UsageError(f'--store "{TRIAL}" is started with a whole network, by onyx up')
    try:
        check_store("--store", store)
    except TopologyError as error:
        raise UsageError(f"--store {error.reason}") from None
    if arguments.topology is None:
        async with RegistrationClient(registration_address(arguments)) as client:
            shape = await client.ask(verbs.TopologyShow())
        network = parse_topology(shape.text, "the running network")
    else:
        network = load_topology(arguments.topology)
    return partial(open_postgres, network, f"metadata/{arguments.name}", store)


@_command(
    {
        "file FILE": "RDF Schema (-: standard input)",
        **SYNTAX,
        "--open": "take names that it does not have",
        **CHANGES,
    }
)
async def run_schema(arguments: argparse.Namespace) -> int:
    """Put a schema in force, which all documents and rules conform to."""
    syntax, data = syntax_of(arguments, arguments.file).value, read_input(arguments.file)
    async with _client(arguments) as client:
        outcome = await client.put_schema(data, syntax, arguments.open, arguments.dry_run)
        await _wait(arguments, client, [""])
    return _told(arguments, [outcome])


@_command(
    {
        "files FILE...": "RDF (-: standard input)",
        "--at URI!": "the URI of the document, or the beginning of the URIs of several",
        **SYNTAX,
        **CHANGES,
    }
)
async def run_register(arguments: argparse.Namespace) -> int:
    """Register documents, or update them."""
    names = arguments.files
    if len(names) > 1 and STANDARD_INPUT in names:
        raise UsageError("standard input is one document; give it alone")
    uris = [arguments.at] if len(names) == 1 else [arguments.at + Path(each).name for each in names]
    documents: dict[str, dict[str, bytes]] = {}
    for uri, name in zip(uris, names, strict=True):
        documents.setdefault(syntax_of(arguments, name).value, {})[uri] = read_input(name)
    async with _client(arguments) as client:
        outcomes = await _register(client, documents, arguments.dry_run)
        await _wait(arguments, client, uris)
    return _told(arguments, outcomes)


_BATCH_BYTES = 3 * 1024 * 1024


def _length(document: tuple[str, bytes]) -> int:
    """At least so much that a batch has no more documents than a provider takes."""
    return max(len(document[1]), _BATCH_BYTES // BATCH_MAX)


async def _register(
    client: MetadataClient, documents: Mapping[str, Mapping[str, bytes]], dry_run: bool
) -> list[Outcome]:
    """By media type and URI, in batches of one home."""
    return [
        await client.register(dict(some), media_type, dry_run)
        for media_type, texts in documents.items()
        for uris in (await client.by_home(texts)).values()
        for some in portions([(uri, texts[uri]) for uri in uris], _length, _BATCH_BYTES)
    ]


@_command({"uris URI...": "of a document"} | CHANGES)
async def run_remove(arguments: argparse.Namespace) -> int:
    """Remove documents, with all that they alone say."""
    async with _client(arguments) as client:
        outcomes = await _remove(client, arguments.uris, arguments.dry_run)
        await _wait(arguments, client, arguments.uris)
    return _told(arguments, outcomes)


async def _remove(client: MetadataClient, uris: Iterable[str], dry_run: bool) -> list[Outcome]:
    return [
        await client.remove(some, dry_run=dry_run)
        for of_home in (await client.by_home(uris)).values()
        for some in (of_home[at : at + BATCH_MAX] for at in range(0, len(of_home), BATCH_MAX))
    ]


@_command(
    {
        "prefix PREFIX": "the beginning of the documents' URIs, before the paths of files",
        "folder FOLDER": "with files of RDF, by their names' endings",
        **CHANGES,
    }
)
async def run_sync(arguments: argparse.Namespace) -> int:
    """Make documents those of a folder, removals too."""
    folder = Path(arguments.folder)
    if not folder.is_dir():
        raise UnreadableInput(f"{folder} is no folder")
    files = {
        arguments.prefix + path.relative_to(folder).as_posix(): (path, syntax)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and (syntax := by_file_name(path.name)) is not None
    }
    async with _client(arguments) as client:
        there = await client.documents(arguments.prefix)
        changed: dict[str, dict[str, bytes]] = {}
        for uri, (path, syntax) in files.items():
            data = read_input(str(path))
            if there.get(uri) != sha256(data).hexdigest():
                changed.setdefault(syntax.value, {})[uri] = data
        gone = [uri for uri in there if uri not in files]
        outcomes = await _register(client, changed, arguments.dry_run)
        outcomes += await _remove(client, gone, arguments.dry_run)
        await _wait(arguments, client, {*files, *gone})
    count = sum(map(len, changed.values()))
    say(f"{counted(count, 'document')} registered, {len(gone)} removed, of {len(files)} files")
    return _told(arguments, outcomes)


async def _wait(arguments: argparse.Namespace, client: MetadataClient, uris: Iterable[str]) -> None:
    if arguments.wait and not arguments.dry_run:
        await client.wait_for_all(uris, lambda missing: say(f"waiting for {', '.join(missing)}"))


@_command(
    {
        **OF_REPOSITORY,
        "text [RULE]": "the rule (-: standard input)",
        "--name NAME =": "the name of the rule, which replaces one of this name",
        "--remove ID": "the rule that goes",
        **DRY_RUN,
        **PROVIDER,
    }
)
async def run_rule(arguments: argparse.Namespace) -> int:
    """List the rules of a repository, add one or remove one."""
    if arguments.text and arguments.remove:
        raise UsageError("give a rule to add, or --remove; not both")
    repository, dry_run = arguments.repository, arguments.dry_run
    async with _client(arguments) as client:
        if arguments.remove:
            outcome = await client.remove_rule(repository, arguments.remove, dry_run)
            return _told(arguments, [outcome])
        if arguments.text:
            text, name = _text(arguments.text), arguments.name
            info = await client.add_rule(repository, text, name, dry_run=dry_run)
            if not arguments.json:
                print(info.id, flush=True)
                if info.suspended:
                    say(f"{info.id} is suspended: {info.suspended}")
            more = {"rule": info.id, "sparql": info.sparql, "suspended": info.suspended}
            return _told(arguments, [info.outcome], **more)
        rules = await client.rules(repository)
    if arguments.json:
        for each in rules:
            print_json(msgspec.structs.asdict(each))
    elif rules:
        rows = [
            (each.id, each.name or "-", "suspended" if each.suspended else each.matches, each.text)
            for each in rules
        ]
        print(table(("ID", "NAME", "MATCHES", "RULE"), rows))
    else:
        say("no rules")
    return EXIT_OK


@_command(
    {
        "file FILE": "made if it is not there",
        **OF_REPOSITORY,
        "--listen HOST:PORT": "share it over HTTP with those who ask there",
        **SERVED,
        **PROVIDER,
    }
)
async def run_cache(arguments: argparse.Namespace) -> None:
    """Keep a repository's cache up to date until it is interrupted."""
    options = served_options(arguments) if arguments.listen else None
    with ExitStack() as stack:
        following = _following(arguments, arguments.file, arguments.repository)
        async with following as (repository, nursery):
            nursery.start_soon(_tell_revisions, arguments, repository)
            nursery.start_soon(_say_what_is_awaited, arguments)
            if options is not None:
                from onyx.gateway.shared_cache import share  # noqa: PLC0415 - takes long to load

                listener = stack.enter_context(bind(options.listen, "--listen"))
                _, url = served_at(options, listener)
                tell = partial(tell_of, arguments, {"event": "up", "url": url}, f"shared at {url}")
                address = registration_address(arguments)
                nursery.start_soon(share, repository, address, options, listener, tell)


@asynccontextmanager
async def _following(
    arguments: argparse.Namespace, file: Path | str, name: str, *, is_temporary: bool = False
) -> AsyncIterator[tuple[MetadataRepository, trio.Nursery]]:
    """A repository, until the process is interrupted."""
    repository = MetadataRepository(
        *(file, registration_address(arguments), name),
        provider=arguments.provider,
        is_temporary=is_temporary,
    )
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with repository, background_tasks(trio.open_nursery()) as nursery:
            yield repository, nursery
            await anext(signals)


async def _say_what_is_awaited(arguments: argparse.Namespace) -> None:
    """Once, if there is no provider."""
    try:
        async with _client(arguments) as client:
            await client.source_id()
    except UserError as error:  # of others the repository itself says what is wrong, or waits
        if error.code == "unknown-source":
            say(f"waits for its provider: there is no source {arguments.provider!r} yet")


async def _tell_revisions(arguments: argparse.Namespace, repository: MetadataRepository) -> None:
    last = -1
    while True:
        last = await repository.changed(last)
        count = await repository.count()
        facts = {"event": "revision", "revision": last, "resources": count}
        tell_of(arguments, facts, f"revision {last}: {counted(count, 'resource')}")


@_command(
    {
        "file FILE": "the cache, or the URL at which another machine shares one",
        "text QUERY": "a rule, or one with 'select v, v.p' for 'register v' (-: standard input)",
        "--explain": "show the SQL instead",
        "--credentials FILE": "with a token (onyx token issue) that the URL takes",
        "--certificate FILE": "by which the URL is known, or its authority, in PEM",
        "--json": "an object a row",
    }
)
def run_query(arguments: argparse.Namespace) -> None:
    """Ask a cache, which answers alone."""
    text = _text(arguments.text)
    with ExitStack() as stack:
        cache: RemoteCache | MetadataCache
        if arguments.file.startswith(PREFIXES):
            cache = RemoteCache(arguments.file, arguments.credentials, arguments.certificate)
        elif Path(arguments.file).is_file():
            cache = stack.enter_context(MetadataCache(arguments.file))
        else:
            raise UnreadableInput(f"there is no cache {arguments.file}")
        if arguments.explain:
            sql = cache.explain(text)
            tell_of(arguments, {"sql": sql}, sql)
            return
        answer = cache.query(text)
    for row in answer.rows:
        tell_of(arguments, {"row": row}, "\t".join(row))
    if arguments.json:
        print_json({name: getattr(answer, name) for name in ("revision", "complete", "rules")})
        return
    whether = "complete" if answer.complete else "perhaps not complete"
    say(f"{counted(len(answer.rows), 'row')} as of revision {answer.revision}, {whether}")
    for rule in answer.rules:
        say(f"it would be with the rule: {rule}")


@_command(
    {
        "text RULE": "the rule of a repository that goes in the end (-: standard input)",
        **PROVIDER,
    }
)
async def run_watch(arguments: argparse.Namespace) -> None:
    """Print what a rule matches as it comes, changes and leaves, until it is interrupted."""
    text = _text(arguments.text)
    with TemporaryDirectory() as folder:
        file, name = Path(folder) / "cache", f"watch-{token_hex(8)}"
        following = _following(arguments, file, name, is_temporary=True)
        async with following as (repository, nursery):
            nursery.start_soon(_tell_matches, arguments, repository, text)


async def _tell_matches(
    arguments: argparse.Namespace, repository: MetadataRepository, rule: str
) -> None:
    await repository.add_rule(rule, wait=False)
    async for each in repository.watch():
        tell_of(arguments, each._asdict(), f"{each.event}\t{each.resource}")


@_command(
    {
        "name [NAME]": "a class, or the URI of a resource (default: list the classes)",
        "--after URI =": "go on behind it",
        f"--limit N = {SHOWN}": f"show so many resources at most ({SHOWN})",
        **PROVIDER,
    }
)
async def run_browse(arguments: argparse.Namespace) -> None:
    """Look at classes, the resources of a class, or a resource and what refers to it."""
    async with _client(arguments) as client:
        seen = await client.browse(arguments.name or "", arguments.after, arguments.limit)
    for name, count in seen.classes.items():
        tell_of(arguments, {"name": name, "resources": count}, f"{name}\t{count}")
    for uri in seen.resources:
        tell_of(arguments, {"resource": uri}, uri)
    found = seen.resource
    if found is not None:
        lines: list[tuple[str, ...]] = [("class", each) for each in found.classes]
        lines += [("says", each.property, each.value) for each in found.statements]
        lines += [(f"{each} of", name) for name, of in found.referrers for each in of]
        lines += [("document", each) for each in found.documents]
        lines += [("repository", each) for each in found.repositories]
        text = "\n".join("\t".join(line) for line in lines)
        tell_of(arguments, {"resource": seen.name, **shown(found), "after": seen.after}, text)
    if seen.after and not arguments.json:
        say(f"there are more: --after {seen.after}")


@_command(
    {
        **OF_REPOSITORY,
        "uris URI...": "of a resource",
        **DRY_RUN,
        **PROVIDER,
    }
)
async def run_select(arguments: argparse.Namespace) -> int:
    """Have a repository hold resources, by a rule for each."""
    async with _client(arguments) as client:
        added = await client.select(arguments.repository, arguments.uris, dry_run=arguments.dry_run)
    if not arguments.json:
        print(*(each.id for each in added), sep="\n", flush=True)
    return _told(arguments, [added[0].outcome], rules=[each.id for each in added])


@_command(
    {
        "done {list,remove}": "what to do",
        "repository [NAME]": "the one that goes",
        **DRY_RUN,
        **LOST,
        **PROVIDER,
    }
)
async def run_repository(arguments: argparse.Namespace) -> int:
    """List the repositories, or remove one with all its rules."""
    if (arguments.done == "remove") != bool(arguments.repository):
        raise UsageError("give a name to remove, and none to list")
    async with _client(arguments) as client:
        if arguments.repository:
            outcome = await client.remove_repository(arguments.repository, arguments.dry_run)
            return _told(arguments, [outcome])
        found = await client.repositories()
    if arguments.json:
        for name, info in found.items():
            print_json({"repository": name, **info._asdict()})
        return EXIT_OK
    rows = [
        (name, info.owner or "-", info.rules, info.matches, info.last, _ago(info.heard))
        for name, info in found.items()
    ]
    print(table(("REPOSITORY", "OWNER", "RULES", "MATCHES", "LAST", "HEARD"), rows))
    return EXIT_OK


def _ago(at: float) -> str:
    return f"{time() - at:.0f} s ago" if at else "-"


@_command(
    {
        "prefix PREFIX": "the beginning of the documents' URIs ('': of the schema too)",
        "--to PROVIDER!": "their home from now on",
        "--lost": "the home of before does not come back",
        **PROVIDER,
    }
)
async def run_prefix(arguments: argparse.Namespace) -> None:
    """Make another provider the home of documents, of several that hold the same."""
    async with _client(arguments) as client:
        await client.move(arguments.prefix, arguments.to, is_lost=arguments.lost)
    facts = {"prefix": arguments.prefix, "to": arguments.to}
    tell_of(arguments, facts, f"{arguments.to} is the home of {arguments.prefix!r}")


@_command(PROVIDER)
async def run_status(arguments: argparse.Namespace) -> None:
    """Show what a provider has."""
    async with _client(arguments) as client:
        facts: dict[str, Any] = msgspec.structs.asdict(await client.status())
        standing = await client.standing()
        facts["members"] = standing.applied
        facts["prefixes"] = {prefix: row.provider for prefix, row in standing.prefixes.items()}
        facts["set_aside"] = await client.ask(SetAside())
    lines = []
    for name, value in facts.items():
        of = value.items() if isinstance(value, dict) else (("", value),)
        lines += [f"{name:17}{each} {said}" if each else f"{name:17}{said}" for each, said in of]
    tell_of(arguments, facts, "\n".join(lines))


@_command(OF_REPOSITORY | {"resource URI": "of the resource"} | PROVIDER)
async def run_explain(arguments: argparse.Namespace) -> None:
    """Say why a repository holds a resource, or why not."""
    async with _client(arguments) as client:
        found = await client.explain(arguments.repository, arguments.resource)
    held = [{"rule": rule, "way": way} for rule, way in found.held]
    lines = [f"{rule}: {' -> '.join(way)}" for rule, way in found.held] or ["it is not held"]
    lines += [f"{rule}: {why}" for rule, whys in found.not_matched.items() for why in whys]
    tell_of(arguments, {"held": held, "not_matched": found.not_matched}, "\n".join(lines))


@_command({"directory DIR": "of the provider", "--name NAME = metadata": "its own", **STORE})
async def run_verify(arguments: argparse.Namespace) -> int:
    """Evaluate all rules anew, and compare with what a stopped provider keeps."""
    directory, name = Path(arguments.directory), arguments.name
    if not directory.is_dir():
        raise UnreadableInput(f"there is no directory {directory}")
    with (
        opened(await _rows(arguments)) as rows,
        MetadataProvider(directory, name, rows) as provider,
    ):
        differences = provider.verify()
    for each in differences:
        tell_of(arguments, {"difference": each}, each)
    if not differences and not arguments.json:
        say("all that is kept is right")
    return EXIT_DATA if differences else EXIT_OK


def _text(said: str) -> str:
    """A rule or a query, or standard input."""
    return read_text(said) if said == STANDARD_INPUT else said


def _told(arguments: argparse.Namespace, outcomes: Iterable[Outcome], **more: Any) -> int:
    is_lost = False
    for outcome in outcomes:
        effects = {name: each._asdict() for name, each in outcome.effects.items()}
        is_lost = is_lost or any(each["left"] for each in effects.values())
        if arguments.json:
            rules = {"by_rule": outcome.rules} if arguments.dry_run else {}
            print_json({"revision": outcome.revision, "effects": effects, **rules, **more})
            continue
        say(f"{'would be ' if arguments.dry_run else ''}revision {outcome.revision}")
        for name, each in effects.items():
            for word, uris in each.items():
                for uri in uris:
                    by = outcome.rules.get(name, {}).get(uri, ())
                    print("\t".join((name, word, uri, *filter(None, [" ".join(by)]))), flush=True)
    return EXIT_DATA if is_lost and getattr(arguments, "fail_if_lost", False) else EXIT_OK
