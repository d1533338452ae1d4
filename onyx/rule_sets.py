"""A Schematron rule set in a network: a profile for each assertion, kept as the file says.

Each text begins with a comment that names its rule set and its assertion, so that an import finds
the profiles of an earlier one: the same file again changes nothing, an assertion that has changed
replaces its profile, one that is gone is named, and removed where that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from os.path import relpath
from pathlib import Path

from onyx.clients import User
from onyx.errors import file_errors
from yfilter.schematron import RuleSet, SchematronRefused, compile_schematron

_MARK = re.compile(r"\(: schematron ([\w.-]+)#([\w./-]+) :\)\n")


@dataclass(frozen=True, slots=True)
class ImportedRules:
    """What became of a rule set: ids of profiles by the key of their assertion.  ``gone``: those
    of assertions that it has no more, which stay unless their removal was asked for.  ``missing``:
    the brokers that were not reached in time.  ``warnings``: what the schemas of the sources say of
    those that are new or changed."""

    added: dict[str, str]
    changed: dict[str, str]
    same: dict[str, str]
    gone: dict[str, str]
    missing: Sequence[str]
    warnings: Mapping[str, Sequence[str]]


def read_rule_set(
    file: Path,
    phase: str | None = None,
    top: Path | None = None,
    documents: Sequence[Path] = (),
) -> RuleSet:
    """The rule set in a file; it may include what is in the folder ``top`` and below (None: its
    own), its expressions may read the ``documents``, and nothing else is read.

    SchematronRefused; UnreadableInput.
    """
    text = _bytes(file)
    read = folder_reader(file.parent, top or file.parent)
    named = {Path(relpath(each, file.parent)).as_posix(): _bytes(each) for each in documents}
    return compile_schematron(text, file=file.name, phase=phase, read=read, documents=named)


def _bytes(file: Path) -> bytes:
    with file_errors(file, "read"):
        return file.read_bytes()


def folder_reader(folder: Path, top: Path) -> Callable[[str], bytes]:
    """Reads files by their names as seen from a folder; SchematronRefused if not below ``top``."""
    within = top.resolve()

    def read(name: str) -> bytes:
        path = (folder / name).resolve()
        if not path.is_relative_to(within):
            raise SchematronRefused(f"{name} is not in {top}")
        try:
            return path.read_bytes()
        except OSError as error:
            raise SchematronRefused(f"{name}: {error.strerror}") from None

    return read


async def import_rules(
    user: User,
    name: str,
    rules: RuleSet,
    *,
    prune: bool = False,
    wait: bool = True,
    timeout_seconds: float | None = None,
) -> ImportedRules:
    """Have a profile of ``user`` for each assertion that could be taken, as the rule set ``name``.

    With ``prune`` the profiles of assertions that are gone are removed.  ``wait`` and
    ``timeout_seconds`` as with ``User.add_profiles``.  ProfilesNotAccepted.
    """
    texts = {
        each.key: f"(: schematron {name}#{each.key} :)\n{each.text}" for each in rules.profiles
    }
    there: dict[str, tuple[str, str]] = {}
    for info in await user.profiles(texts=True):
        mark = _MARK.match(info.text or "")
        if mark and mark[1] == name:
            there[mark[2]] = info.id, info.text or ""
    new = [key for key in texts if key not in there]
    other = [key for key in texts if key in there and there[key][1] != texts[key]]
    late = timeout_seconds
    # Asked for twice at the same time it is done once.
    state = repr((name, [texts[key] for key in new], sorted(there.values())))
    request = f"schematron {sha256(state.encode()).hexdigest()}"
    missing: set[str] = set()
    added: list[str] = []
    warnings: dict[str, Sequence[str]] = {}
    async for batch in user.add_profiles(
        (texts[key] for key in new), key=request, wait=wait, timeout_seconds=late
    ):
        added += batch.ids
        missing.update(batch.missing)
        warnings |= {new[place]: said for place, said in batch.warnings.items()}
    changes = [(there[key][0], texts[key]) for key in other]
    async for batch in user.update_profiles(changes, wait=wait, timeout_seconds=late):
        missing.update(batch.missing)
        warnings |= {other[place]: said for place, said in batch.warnings.items()}
    gone = {key: profile for key, (profile, _) in there.items() if key not in texts}
    if prune:
        async for _ in user.remove_profiles(gone.values()):
            pass
    return ImportedRules(
        dict(zip(new, added, strict=True)),
        {key: there[key][0] for key in other},
        {key: there[key][0] for key in texts if key in there and key not in other},
        gone,
        sorted(missing),
        warnings,
    )
