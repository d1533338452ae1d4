"""Functions as function providers offer them: a zip, its digest, a signature beside it.

::

    thumbnail/                       onyx function pack thumbnail --out thumbnail.zip
    ├── function.json   {"name": "thumbnail", "kind": "scalar",
    │                    "signature": "(image BINARY) -> BINARY", "entry": "thumbnail:small"}
    └── thumbnail.py    def small(images): ...        # a pyarrow array to one as long

    thumbnail.zip                    its digest is sha256: of its bytes, equal for equal folders
    thumbnail.zip.sig                claims (digest, signature, cost model), signed: sign, verify
"""

from __future__ import annotations

import ast
import io
import json
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.error import URLError
from urllib.parse import urlsplit

from onyx.data_directory import write_atomically
from onyx.errors import NotAuthenticated, UnreadableInput, file_errors
from onyx.identity.signing import SignatureCheck, Signed, Signer
from overlay.link.principal import Principal
from registration.queries.column_types import Columns, NoType, read_signature
from registration.queries.providers import Function, FunctionProvider
from registration.queries.refusals import QueryRefused
from registration.spark.function_runner import ARCHIVE_BYTES_MAX, Work

DESCRIPTION = "function.json"
_MEMBERS_MAX = 1_000
_UNPACKED_MAX = 32 << 20
_TIME = (1980, 1, 1, 0, 0, 0)  # of all members, so that equal folders have equal digests
_FIELDS = ("name", "kind", "signature", "entry")
COST_MODEL = ("seconds_per_row", "megabytes", "rows_per_row", "bytes_per_row", "price_per_row")
"""Fields of a ``Function`` that a signature covers."""


class FunctionArchive(NamedTuple):
    """A zip that was read and found good.  ``entry``: ``module:name``; ``data``: its bytes."""

    name: str
    kind: str
    signature: str
    entry: str
    inputs: Columns
    outputs: Columns
    digest: str
    data: bytes

    def work(self, function: Function, *, weak: bool = False) -> Work:
        """For ``function_runner``; QueryRefused ``bad-signature`` where the function of a catalog
        says another signature."""
        said = (function.kind, function.inputs, function.outputs)
        if said != (self.kind, self.inputs, self.outputs):
            reason = f"the zip of {function.name} says {self.signature}, the catalog does not"
            raise QueryRefused("bad-signature", reason, function.uri)
        return Work(function, self.data, self.entry, weak)


def digest_of(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def pack(directory: Path) -> bytes:
    """The zip of a folder with ``function.json`` and Python files; QueryRefused."""
    out = io.BytesIO()
    if not directory.is_dir():
        raise UnreadableInput(f"{directory} is no folder")
    with file_errors(directory, "read"), zipfile.ZipFile(out, "w") as archive:
        for path in sorted(directory.rglob("*")):
            name = path.relative_to(directory).as_posix()
            if path.is_symlink():
                raise _refused(f"{name} is a link; expected a file")
            if path.is_file() and "__pycache__" not in path.parts:
                archive.writestr(zipfile.ZipInfo(name, _TIME), path.read_bytes())
    read_archive(out.getvalue())
    return out.getvalue()


def read_archive(data: bytes) -> FunctionArchive:
    """QueryRefused ``syntax`` for bytes that are no zip of a function."""
    if len(data) > ARCHIVE_BYTES_MAX:
        raise _refused(f"the zip has more than {ARCHIVE_BYTES_MAX:,} bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            _check_names(members)
            texts = {member.filename: archive.read(member) for member in members}
    except QueryRefused:
        raise
    except Exception as error:  # zipfile raises a dozen kinds for bytes that are no zip
        raise _refused(f"no zip of a function: {error}") from None
    said = _description(texts)
    try:
        inputs, outputs = read_signature(said["signature"])
    except NoType as error:
        raise _refused(f"{DESCRIPTION}: signature: {error.fault}") from None
    if (said["kind"] == "scalar") != (outputs[0][0] == ""):
        raise _refused(f"{DESCRIPTION}: a {said['kind']} function does not give that")
    _check_entry(said["entry"], texts)
    name, kind, signature, entry = (said[field] for field in _FIELDS)
    return FunctionArchive(name, kind, signature, entry, inputs, outputs, digest_of(data), data)


def _check_names(members: Sequence[zipfile.ZipInfo]) -> None:
    if len(members) > _MEMBERS_MAX or sum(m.file_size for m in members) > _UNPACKED_MAX:
        raise _refused(f"more than {_MEMBERS_MAX:,} members or {_UNPACKED_MAX:,} bytes unpacked")
    if len({m.filename for m in members}) < len(members):
        raise _refused("a name is there twice")
    for member in members:
        path = PurePosixPath(member.filename)
        plain = not path.is_absolute() and ".." not in path.parts and "\\" not in member.filename
        if not plain or (path.suffix != ".py" and member.filename != DESCRIPTION):
            raise _refused(f"{member.filename!r}: expected {DESCRIPTION} and Python files alone")


def _description(texts: Mapping[str, bytes]) -> dict[str, str]:
    if DESCRIPTION not in texts:
        raise _refused(f"{DESCRIPTION} is missing")
    try:
        said = json.loads(texts[DESCRIPTION])
    except (ValueError, RecursionError) as error:
        raise _refused(f"{DESCRIPTION}: {error}") from None
    fits = isinstance(said, dict) and set(said) == set(_FIELDS)
    if not fits or not all(isinstance(value, str) and value for value in said.values()):
        raise _refused(f"{DESCRIPTION}: expected the texts {', '.join(_FIELDS)}, and nothing else")
    if said["kind"] not in ("scalar", "table"):
        raise _refused(f"{DESCRIPTION}: kind: {said['kind']!r}; expected scalar or table")
    return said


def _check_entry(entry: str, texts: Mapping[str, bytes]) -> None:
    module, _, name = entry.partition(":")
    stem = module.replace(".", "/")
    file = next((f for f in (f"{stem}.py", f"{stem}/__init__.py") if f in texts), None)
    if file is None or not name:
        reason = f"{DESCRIPTION}: entry: {entry!r}; expected MODULE:NAME of a file in the zip"
        raise _refused(reason)
    try:
        tree = ast.parse(texts[file], file)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _refused(f"{file}: {error}") from None
    targets = [t for node in tree.body if isinstance(node, ast.Assign) for t in node.targets]
    names = {t.id for t in targets if isinstance(t, ast.Name)}
    if name not in names | {getattr(node, "name", "") for node in tree.body}:
        raise _refused(f"{file} defines no {name!r}")


def _refused(reason: str) -> QueryRefused:
    return QueryRefused("syntax", reason)


# --- signatures -----------------------------------------------------------------------------------


class SignedFunction(Signed):
    """``claims``: name, digest, signature and cost model, as the signer says them."""

    @classmethod
    def make(
        cls, archive: FunctionArchive, cost: Mapping[str, float], signer: Signer
    ) -> SignedFunction:
        said = {"kind": archive.kind, "name": archive.name, "signature": archive.signature}
        model = {key: cost[key] for key in COST_MODEL if key in cost}
        return cls.of({"digest": archive.digest, **said, **model}, signer)

    @classmethod
    def read(cls, text: str | bytes) -> SignedFunction:
        """QueryRefused ``bad-signature`` for a text that is none."""
        try:
            return super().read(text)
        except NotAuthenticated:
            reason = "no signature of a function"
            raise QueryRefused("bad-signature", reason, hint="onyx function sign") from None

    def check(self, archive: FunctionArchive, by: SignatureCheck) -> Principal:
        """The signer.  QueryRefused ``bad-digest`` where the zip is another one,
        ``bad-signature`` where the signature is not good."""
        signed = self.claims.get("digest")
        if signed != archive.digest:
            reason = f"the zip has the digest {archive.digest}, signed is {signed}"
            raise QueryRefused("bad-digest", reason, archive.name)
        try:
            return self.signer(by)
        except NotAuthenticated as error:
            raise QueryRefused("bad-signature", str(error), archive.name) from None


# --- loading --------------------------------------------------------------------------------------


class FunctionStore:
    """Zips that a cycle provider has fetched, by digest, so that each is fetched once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def load(self, function: Function, provider: FunctionProvider) -> FunctionArchive:
        """QueryRefused ``bad-digest`` for other bytes than registered, ``provider-away`` where the
        function provider does not give them."""
        if not function.digest:
            reason = f"{function.name} is registered without a digest, so nobody may load it"
            raise QueryRefused("bad-digest", reason, function.uri)
        kept = self._directory / f"{function.digest.removeprefix('sha256:')}.zip"
        data = kept.read_bytes() if kept.is_file() else b""
        if digest_of(data) != function.digest:
            data = _fetched(function, provider)
            if digest_of(data) != function.digest:
                reason = f"the zip of {function.name} has the digest {digest_of(data)}"
                raise QueryRefused(
                    "bad-digest", f"{reason}, registered is {function.digest}", function.uri
                )
            with file_errors(kept, "written"):
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_atomically(kept, data, mode=0o600)
        return read_archive(data)


def _fetched(function: Function, provider: FunctionProvider) -> bytes:
    parts = PurePosixPath(function.archive)
    if not function.archive or parts.is_absolute() or ".." in parts.parts:
        reason = f"{function.name}: its archive {function.archive!r} is not within {provider.name}"
        raise QueryRefused("bad-digest", reason, function.uri)
    away = f"{provider.name} does not give {function.archive}"
    scheme = urlsplit(provider.location).scheme
    try:
        if scheme == "https":
            address = f"{provider.location.rstrip('/')}/{function.archive}"
            with urllib.request.urlopen(address, timeout=30) as answer:
                if answer.status != HTTPStatus.OK:
                    raise QueryRefused("provider-away", f"{away}: {answer.status}", function.uri)
                return bytes(answer.read(ARCHIVE_BYTES_MAX + 1))
        if scheme not in ("", "file"):
            raise QueryRefused("provider-away", f"{away}: {scheme}: is not https", function.uri)
        folder = Path(urlsplit(provider.location).path if scheme else provider.location).resolve()
        file = (folder / function.archive).resolve()
        if not file.is_relative_to(folder):
            raise QueryRefused("provider-away", f"{away}: it is a link elsewhere", function.uri)
        with file.open("rb") as stream:
            return stream.read(ARCHIVE_BYTES_MAX + 1)
    except (OSError, URLError, ValueError) as error:
        raise QueryRefused("provider-away", f"{away}: {error}", function.uri) from None


def read_zip(path: Path) -> FunctionArchive:
    """Of a file; UnreadableInput where it cannot be read, QueryRefused where it is none."""
    with file_errors(path, "read"), path.open("rb") as stream:
        data = stream.read(ARCHIVE_BYTES_MAX + 1)
    return read_archive(data)
