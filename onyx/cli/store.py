"""``onyx store``: look at what processes have on disk, mend it, copy it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onyx.cli import store_rebuild
from onyx.cli.values import print_json, tell_of
from onyx.cli.verb import Subparsers, add_noun, add_verb
from onyx.data_directory import ROWS_FILE, STORE_FILE, directory_locked
from onyx.errors import EXIT_OK, EXIT_STORE, StoreUnusable, UnreadableInput
from overlay.archive_file import Gap, files_of, is_archive, rows_of_file
from overlay.link.errors import StoreError, StoreLost
from overlay.link.store_head import head_file
from overlay.link.store_inspection import Inspection, inspect
from overlay.link.store_repair import backup, repair

DETAILS = """\
A broker and a registration service keep what they must not forget in a store:
nodes/ID/store.sqlite in the data directory of the network, with its log
(store.sqlite-wal) and its head (store.sqlite-head), which says up to which commit it
was. A process that finds its store damaged, or older than it was, ends with exit code 74
and changes nothing.

What to do then: look (onyx store verify), put back what was there, all files of that
name, or a backup. Or, if there is none, onyx store repair, which makes a new store of
what is good and names what is not. What a store has lost nobody but its neighbours,
sources and users may still have: they are told store-lost when they meet it. What a
registration service has lost its brokers have: onyx store rebuild."""

EXAMPLES = """\
  onyx store verify ~/.local/state/onyx/figure4             every store of a network, running or not
  onyx store verify ~/.local/state/onyx/figure4/nodes/B2
  onyx store backup ~/.local/state/onyx/figure4/nodes/B2 /var/backups/B2.sqlite
  onyx store repair ~/.local/state/onyx/figure4/nodes/B2
  onyx store rebuild ~/.local/state/onyx/figure4      the registration service
"""

VERIFY = """\
Reads everything: the check sum of each row, the ledger of each space (how many rows it
has), the pages, and whether the last commit is that of the head. It changes nothing, and
works while the process runs, on its last commit; the log grows as long as it takes.

Of an archive (onyx up --archive DIR) it reads the finished files, and tells how many
messages of which are damaged.

Exit code 74: something is wrong with one of them."""

VERIFY_EXAMPLES = """\
  onyx store verify ~/.local/state/onyx/figure4
  onyx store verify ~/.local/state/onyx/figure4/nodes/B2 --json
  onyx store verify news
"""

REPAIR = """\
The process has to be stopped. Makes a new store of all rows that are what was stored, and
keeps the old one beside it as damaged.sqlite (with -wal and -head). Rows with another
check sum go to damaged.jsonl, one a line, with space, key, sum and value (base64); of
rows that cannot be read at all it is said how many each space lacks.

What the rows mean: profile, outbox (what waits for neighbours), delivery (what waits for
users), ... A process that cannot do without one of those that are gone says so when it
starts, or when it comes to it; then take it out (onyx topology apply FILE --lost ID).

A store that is not at the commit of its head has lost commits, and nobody can say which.
Then --accept-loss is needed: it gives the store a new head, and it goes on with what
there is. Its neighbours look at what it has when it connects. If it has less than it has
acknowledged to them, they do not let it in (store-lost): then take the broker out with
onyx topology apply FILE --lost ID; it can join again with an empty store.

Exit code 74: it is not to be repaired like this; 75: its process is running."""

REPAIR_EXAMPLES = """\
  onyx store repair ~/.local/state/onyx/figure4/nodes/B2
  onyx store repair ~/.local/state/onyx/figure4/nodes/B2 --accept-loss
"""

BACKUP = """\
Copies the last commit of a store to FILE, and its head to FILE-head, while its process
runs or not. The copy is read and held against its check sums before it gets its name.

To restore it: stop the process, move away all files that begin with store.sqlite, and
copy FILE to store.sqlite and FILE-head to store.sqlite-head in the directory of the
node. A copy of a process that has gone on is older than what others know: neighbours,
sources and users say store-lost when they meet it. One of a process that was stopped
for good before is as good as what it was."""

BACKUP_EXAMPLES = """\
  onyx store backup ~/.local/state/onyx/figure4/nodes/B2 /var/backups/B2.sqlite
  cp /var/backups/B2.sqlite      ~/.local/state/onyx/figure4/nodes/B2/store.sqlite
  cp /var/backups/B2.sqlite-head ~/.local/state/onyx/figure4/nodes/B2/store.sqlite-head
"""


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(subparsers, "store", details=DETAILS, examples=EXAMPLES)
    paths = "the data directory of a network or a process, a store, or an archive"
    node = {"path NODE": "the directory of a process, DATA/nodes/ID, or its store"}
    loss = {"--accept-loss": "go on with less than there has been"}
    json = {"--json": "print JSON, one object a store"}
    add_verb(
        *(subverbs, "verify", "read all", run_verify, {"paths DIR...": paths} | json),
        details=VERIFY,
        examples=VERIFY_EXAMPLES,
    )
    add_verb(
        *(subverbs, "repair", "make a new one of what is good", run_repair, node | loss | json),
        details=REPAIR,
        examples=REPAIR_EXAMPLES,
    )
    add_verb(
        *(
            subverbs,
            "backup",
            "copy one",
            run_backup,
            node | {"file FILE": "must not be there"} | json,
        ),
        details=BACKUP,
        examples=BACKUP_EXAMPLES,
    )
    store_rebuild.add_parser(subverbs)


def run_verify(arguments: argparse.Namespace) -> int:
    """One store, or archive, after the other."""
    code = EXIT_OK
    for path in [store for each in arguments.paths for store in _stores(each)]:
        if is_archive(path):
            code = max(code, _verify_archive(path, arguments))
            continue
        found = _inspected(path)
        if not found.is_whole:
            code = EXIT_STORE
        text = "\n  ".join([f"{path}: {_summary(found)}", *_faults(found)])
        tell_of(arguments, {"store": str(path), **_described(found)}, text)
    return code


def _verify_archive(path: Path, arguments: argparse.Namespace) -> int:
    gaps: list[Gap] = []
    files = files_of(path)
    try:
        messages = sum(1 for file in files for _ in rows_of_file(file, note=gaps.append))
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}") from None
    said = [str(gap) for gap in gaps]
    state = f"{'NOT whole' if gaps else 'whole'}, {len(files):,} files, {messages:,} good messages"
    facts = {"archive": str(path), "whole": not gaps, "files": len(files), "messages": messages}
    tell_of(arguments, facts | {"damaged": said}, "\n  ".join([f"{path}: {state}", *said]))
    return EXIT_STORE if gaps else EXIT_OK


def run_repair(arguments: argparse.Namespace) -> None:
    """A new store, if there is something to mend."""
    path = _store(arguments.path)
    with directory_locked(path.parent):
        found = _inspected(path)
        is_needed = not found.is_whole
        if is_needed:
            with _unusable():
                rows, aside = repair(found, accepts_loss=arguments.accept_loss)
    if arguments.json:
        print_json({"store": str(path), "repaired": is_needed, **_described(found)})
    elif not is_needed:
        print(f"{path}: {_summary(found)}; nothing to repair")
    else:
        print(f"{path}: made anew of {found.rows.total():,} good rows. What was wrong:")
        print("", *_faults(found), sep="\n  ")
        print(f"{len(found.damaged):,} damaged rows are in {rows}, the old store is {aside}")


def run_backup(arguments: argparse.Namespace) -> None:
    """A copy of one moment."""
    path = _store(arguments.path)
    with _unusable():
        chain = backup(path, arguments.file)
    text = f"{arguments.file} is {path} at commit {chain.number:,}; its head is beside it"
    facts = {"store": str(path), "file": str(arguments.file), "commit": chain.number}
    tell_of(arguments, facts, text)


def _stores(path: Path) -> list[Path]:
    """Those of a network, or one; an archive is one as well."""
    nodes = path / "nodes"
    if is_archive(path):
        return [path]
    if not nodes.is_dir():
        return [_store(path)]
    found = [directory / STORE_FILE for directory in sorted(nodes.iterdir())]
    found += sorted(path.glob(f"metadata/*/{ROWS_FILE}"))
    return [store for store in found if store.exists() or head_file(store).exists()]


def _store(path: Path) -> Path:
    store = path / STORE_FILE if path.is_dir() else path
    if not store.exists() and not head_file(store).exists():
        raise UnreadableInput(f"there is no store {store}; expected DATA/nodes/ID, or a store")
    return store


def _inspected(path: Path) -> Inspection:
    with _unusable():
        return inspect(path)


@contextmanager
def _unusable() -> Iterator[None]:
    try:
        yield
    except (StoreError, OSError) as error:
        gives_up = " (which gives up what is not there any more)"
        raise StoreUnusable(f"{error}{gives_up * isinstance(error, StoreLost)}") from None


def _summary(found: Inspection) -> str:
    state = "whole" if found.is_whole else "NOT whole"
    if found.chain is None:
        return f"{state}, format {found.version}, without check sums"
    spaces = len(found.rows)
    rows = found.rows.total()
    return f"{state}, at commit {found.chain.number:,}, {rows:,} good rows in {spaces} spaces"


def _faults(found: Inspection) -> list[str]:
    said = [found.lost] if found.lost else []
    said += [f"row {key!r} of space {space!r} is damaged" for space, key in found.damaged]
    for space, count in sorted(found.missing.items()):
        if count > 0:
            said.append(f"space {space!r} lacks {count:,} rows, the damaged ones among them")
        else:
            said.append(f"space {space!r} has {-count:,} rows more than were stored, or others")
    return said + found.faults


def _described(found: Inspection) -> dict[str, object]:
    return {
        "whole": found.is_whole,
        "format": found.version,
        "commit": None if found.chain is None else found.chain.number,
        "rows": dict(found.rows),
        "damaged": [{"space": space, "key": key} for space, key in found.damaged],
        "missing": found.missing,
        "faults": found.faults,
        "lost": found.lost,
    }
