"""What a metadata provider is asked, a record each: its arguments, its answer, and what is done.

A client asks by ``NetworkClient.ask_source``, with the record as MessagePack; the provider's
process reads it into the same record.  One that writes takes the right to publish as the provider.
One that a ProviderReader answers changes nothing, and is carried out beside those that do.
"""

from __future__ import annotations

import collections.abc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from inspect import signature
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta

from formats.errors import Fault
from registration.metadata.backbone import Standing
from registration.metadata.browsing import SHOWN, Seen
from registration.metadata.documents import MetadataRefused
from registration.metadata.explanation import Explanation
from registration.metadata.member import Member
from registration.metadata.provider import NAME_LENGTH_MAX, Outcome, Provider, RuleInfo
from registration.metadata.provider_reader import (
    BATCH_MAX,
    Progress,
    ProviderReader,
    ProviderStatus,
    RepositoryInfo,
    WholePage,
)

A = TypeVar("A")
Page: TypeAlias = dict[str, str]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
Uris: TypeAlias = Annotated[Sequence[str], Meta(max_length=BATCH_MAX)]


class Question(
    msgspec.Struct, Generic[A], frozen=True, kw_only=True, omit_defaults=True, tag_field="ask"
):
    """``does``: the method of a provider, whose arguments the fields are; ``writes``: it changes
    metadata, not only what a repository wants; ``is_passed_on``: by another provider, which is not
    the home of what it is about."""

    does: ClassVar[Callable[..., Any]]
    writes: ClassVar[bool] = False

    is_passed_on: bool = False

    def carry_out(self, provider: Any, owner: str) -> Any:
        """``owner``: the principal that asks, "" without TLS."""
        names = _arguments(type(self))
        said = {name: owner if name == "owner" else getattr(self, name) for name in names}
        return getattr(provider, type(self).does.__name__)(**said)


class PutSchema(Question[Outcome], frozen=True, tag="schema.put"):
    does, writes = Provider.put_schema, True

    data: bytes
    media_type: str
    is_open: bool = False
    dry_run: bool = False


class Register(Question[Outcome], frozen=True, tag="register"):
    does, writes = Provider.register, True

    documents: Annotated[Mapping[str, bytes], Meta(max_length=BATCH_MAX)]
    media_type: str
    dry_run: bool = False


class Remove(Question[Outcome], frozen=True, tag="remove"):
    does, writes = Provider.remove, True

    uris: Uris
    dry_run: bool = False


class AddRules(Question[list[RuleInfo]], frozen=True, tag="rule.add"):
    """``rules``: texts, with their names or ""."""

    does = Provider.add_rules

    repository: Name
    rules: Annotated[Sequence[tuple[str, str]], Meta(max_length=BATCH_MAX)]
    dry_run: bool = False


class RemoveRule(Question[Outcome], frozen=True, tag="rule.remove"):
    does = Provider.remove_rule

    repository: Name
    rule: str
    dry_run: bool = False


class RuleListed(msgspec.Struct, frozen=True):
    id: str
    name: str
    text: str
    matches: int
    suspended: str = ""


class Rules(Question[list[RuleListed]], frozen=True, tag="rule.list"):
    """A page, behind the rule of an id."""

    does = ProviderReader.rules_page

    repository: Name
    after: str = ""

    def carry_out(self, provider: ProviderReader, owner: str) -> list[RuleListed]:
        return [
            RuleListed(f"r{row.number}", row.name, row.text, matches, row.suspended)
            for row, matches in provider.rules_page(self.repository, self.after)
        ]


class Matches(Question[list[str]], frozen=True, tag="rule.matches"):
    """A page, behind a URI, in the order in which the provider first heard of them."""

    does = ProviderReader.matches_page

    rule: str
    after: str = ""


class Explain(Question[Explanation], frozen=True, tag="explain"):
    does = ProviderReader.explain

    repository: Name
    resource: str


class Browse(Question[Seen], frozen=True, tag="browse"):
    """``name``: a class or a resource; without one all classes."""

    does = ProviderReader.browse

    name: str = ""
    after: str = ""
    limit: Annotated[int, Meta(ge=1, le=BATCH_MAX)] = SHOWN


class Repositories(Question[dict[str, RepositoryInfo]], frozen=True, tag="repository.list"):
    does = ProviderReader.repositories


class RemoveRepository(Question[Outcome], frozen=True, tag="repository.remove"):
    does = Provider.remove_repository

    repository: Name
    dry_run: bool = False


class Document(Question[tuple[str, bytes]], frozen=True, tag="document"):
    does = ProviderReader.document

    uri: str

    def carry_out(self, provider: ProviderReader, owner: str) -> tuple[str, bytes]:
        found = provider.document(self.uri)
        if found is None:
            raise MetadataRefused(Fault("no-such-document", f"there is no document {self.uri}"))
        return found


class Documents(Question[dict[str, str]], frozen=True, tag="documents"):
    """A page of digests by URI."""

    does = ProviderReader.documents

    prefix: str = ""
    after: str = ""


class AskProgress(Question[Progress], frozen=True, tag="progress"):
    does = ProviderReader.progress

    repository: Name


class Status(Question[ProviderStatus], frozen=True, tag="status"):
    does = ProviderReader.status


class Whole(Question[WholePage], frozen=True, tag="whole"):
    """All that a repository is to hold, as messages that replace all before; a page."""

    does = ProviderReader.whole

    repository: Name
    after: tuple[int, int] = (0, 0)
    known: bytes = b""


class SetAside(Question[dict[str, str]], frozen=True, tag="aside"):
    """Documents and resources that do not conform to the schema, each with the reason."""

    does = Provider.set_aside


class AskStanding(Question[Standing], frozen=True, tag="standing"):
    """How far a member of the backbone is."""

    does = ProviderReader.standing


class Join(Question[Standing], frozen=True, tag="join"):
    """A provider without documents becomes a member."""

    does, writes = Member.join, True

    name: Name


class MovePrefix(Question[Outcome], frozen=True, tag="prefix.move"):
    """``is_lost``: the home of the prefix is, and the one that is asked takes it."""

    does, writes = Member.move, True

    prefix: str
    to: Name
    is_lost: bool = False


class Digests(Question[dict[str, bytes]], frozen=True, tag="digests"):
    """A page of digests by URI, for another member."""

    does = ProviderReader.digests

    prefix: str
    after: str = ""


class Held(Question[dict[str, tuple[str, bytes]]], frozen=True, tag="held"):
    """Documents as they are kept, for another member; the first of them, if they are long."""

    does = ProviderReader.held

    uris: Uris


ANY: Any = Union[tuple(Question.__subclasses__())]  # noqa: UP007
_encode = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(ANY).decode


def answer_of(kind: type[Question[A]]) -> Any:
    """The type of the answer to a question."""
    return get_args(vars(kind)["__orig_bases__"][0])[0]


@cache
def only_reads(kind: type[Question[Any]]) -> bool:
    return hasattr(ProviderReader, kind.does.__name__)


@cache
def _arguments(kind: type[Question[Any]]) -> list[str]:
    return list(signature(kind.does).parameters)[1:]


async def all_documents(ask: Callable[[Documents], Awaitable[Page]], prefix: str) -> Page:
    """All pages."""
    found: Page = {}
    while page := await ask(Documents(prefix=prefix, after=max(found, default=""))):
        found |= page
    return found


def asked(question: Question[Any]) -> bytes:
    return _encode(question)


def read_question(body: bytes) -> Question[Any]:
    """MetadataRefused ``bad-question``: where it is not one, and what was expected."""
    try:
        found: Question[Any] = _read(body)
    except (ValueError, msgspec.MsgspecError) as error:
        known = ", ".join(sorted(kind.__struct_config__.tag for kind in get_args(ANY)))
        raise MetadataRefused(
            Fault("bad-question", f"no question to a metadata provider: {error}", known)
        ) from None
    return found


def shown(value: object) -> Any:
    """An answer as JSON has it: records by the names of their fields, documents as texts."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    elif isinstance(value, Outcome):
        value = vars(value)
    if isinstance(value, dict):
        return {name: shown(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [shown(each) for each in value]
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


@cache
def named_type(hint: Any) -> Any:
    """The type of what ``shown`` gives of an answer of a type."""
    names = getattr(hint, "__struct_fields__", None) or getattr(hint, "__match_args__", ())
    if isinstance(hint, type) and names:
        hints = get_type_hints(hint, include_extras=True)
        said = [(name, named_type(hints[name])) for name in names]
        return msgspec.defstruct(hint.__name__, said, module=hint.__module__)
    origin, inner = get_origin(hint), tuple(map(named_type, get_args(hint)))
    if origin in (Union, UnionType):
        return Union[inner]  # noqa: UP007
    if origin in (list, tuple, dict, collections.abc.Mapping, collections.abc.Sequence):
        return origin[inner]
    return str if hint is bytes else hint


def answered(answer: object) -> bytes:
    return _encode(answer)


def read_answer(question: Question[A], body: bytes) -> A:
    found: A = msgspec.msgpack.decode(body, type=answer_of(type(question)))
    return found
