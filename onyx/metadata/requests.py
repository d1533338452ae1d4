"""What a metadata provider is asked, a record each: its arguments, its answer, and what is done.

A client asks by ``NetworkClient.ask_source``, with the record as MessagePack; the provider's
process reads it into the same record.  One that writes takes the right to publish as the provider.
One that takes a ProviderReader changes nothing, and is carried out beside those that do.
"""

from __future__ import annotations

from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
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
from registration.metadata.provider import NAME_LENGTH_MAX, Outcome, Provider
from registration.metadata.provider_reader import (
    BATCH_MAX,
    Progress,
    ProviderReader,
    ProviderStatus,
    RepositoryInfo,
    WholePage,
)

A = TypeVar("A")
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
Uris: TypeAlias = Annotated[list[str], Meta(max_length=BATCH_MAX)]


class Question(
    msgspec.Struct, Generic[A], frozen=True, kw_only=True, omit_defaults=True, tag_field="ask"
):
    """``writes``: it changes metadata, not only what a repository wants; ``is_passed_on``: by
    another provider, which is not the home of what it is about."""

    writes: ClassVar[bool] = False

    is_passed_on: bool = False

    def carry_out(self, provider: Any, owner: str) -> A:
        """``owner``: the principal that asks, "" without TLS."""
        raise NotImplementedError


class PutSchema(Question[Outcome], frozen=True, kw_only=True, tag="schema.put"):
    writes = True

    data: bytes
    media_type: str
    is_open: bool = False
    dry_run: bool = False

    def carry_out(self, provider: Provider, owner: str) -> Outcome:
        is_open, dry_run = self.is_open, self.dry_run
        return provider.put_schema(self.data, self.media_type, is_open=is_open, dry_run=dry_run)


class Register(Question[Outcome], frozen=True, kw_only=True, tag="register"):
    writes = True

    documents: Annotated[dict[str, bytes], Meta(max_length=BATCH_MAX)]
    media_type: str
    dry_run: bool = False

    def carry_out(self, provider: Provider, owner: str) -> Outcome:
        return provider.register(self.documents, self.media_type, dry_run=self.dry_run)


class Remove(Question[Outcome], frozen=True, kw_only=True, tag="remove"):
    writes = True

    uris: Uris
    dry_run: bool = False

    def carry_out(self, provider: Provider, owner: str) -> Outcome:
        return provider.remove(self.uris, dry_run=self.dry_run)


class RuleAdded(NamedTuple):
    """``sparql``: a query that says the same as the rule; ``suspended``: why it matches nothing."""

    id: str
    name: str
    text: str
    sparql: str
    outcome: Outcome
    suspended: str


class AddRules(Question[list[RuleAdded]], frozen=True, kw_only=True, tag="rule.add"):
    """``rules``: texts, with their names or ""."""

    repository: Name
    rules: Annotated[list[tuple[str, str]], Meta(max_length=BATCH_MAX)]
    dry_run: bool = False

    def carry_out(self, provider: Provider, owner: str) -> list[RuleAdded]:
        dry_run = self.dry_run
        added = provider.add_rules(self.repository, self.rules, owner=owner, dry_run=dry_run)
        return [RuleAdded(*(i.id, i.name, i.text, i.sparql, i.outcome, i.suspended)) for i in added]


class RemoveRule(Question[Outcome], frozen=True, kw_only=True, tag="rule.remove"):
    repository: Name
    rule: str
    dry_run: bool = False

    def carry_out(self, provider: Provider, owner: str) -> Outcome:
        return provider.remove_rule(self.repository, self.rule, owner=owner, dry_run=self.dry_run)


class RuleListed(msgspec.Struct, frozen=True):
    id: str
    name: str
    text: str
    matches: int
    suspended: str = ""


class Rules(Question[list[RuleListed]], frozen=True, kw_only=True, tag="rule.list"):
    """A page, behind the rule of an id."""

    repository: Name
    after: str = ""

    def carry_out(self, provider: ProviderReader, owner: str) -> list[RuleListed]:
        return [
            RuleListed(f"r{row.number}", row.name, row.text, matches, row.suspended)
            for row, matches in provider.rules_page(self.repository, self.after)
        ]


class Matches(Question[list[str]], frozen=True, kw_only=True, tag="rule.matches"):
    """A page, behind a URI, in the order in which the provider first heard of them."""

    rule: str
    after: str = ""

    def carry_out(self, provider: ProviderReader, owner: str) -> list[str]:
        return provider.matches_page(self.rule, self.after)


class Explain(Question[Explanation], frozen=True, kw_only=True, tag="explain"):
    repository: Name
    resource: str

    def carry_out(self, provider: ProviderReader, owner: str) -> Explanation:
        return provider.explain(self.repository, self.resource)


class Browse(Question[Seen], frozen=True, kw_only=True, tag="browse"):
    """``name``: a class or a resource; without one all classes."""

    name: str = ""
    after: str = ""
    limit: Annotated[int, Meta(ge=1, le=BATCH_MAX)] = SHOWN

    def carry_out(self, provider: ProviderReader, owner: str) -> Seen:
        return provider.browse(self.name, self.after, self.limit)


class Repositories(
    Question[dict[str, RepositoryInfo]], frozen=True, kw_only=True, tag="repository.list"
):
    def carry_out(self, provider: ProviderReader, owner: str) -> dict[str, RepositoryInfo]:
        return provider.repositories()


class RemoveRepository(Question[Outcome], frozen=True, kw_only=True, tag="repository.remove"):
    repository: Name
    dry_run: bool = False

    def carry_out(self, provider: Provider, owner: str) -> Outcome:
        return provider.remove_repository(self.repository, owner=owner, dry_run=self.dry_run)


class Document(Question[tuple[str, bytes]], frozen=True, kw_only=True, tag="document"):
    uri: str

    def carry_out(self, provider: ProviderReader, owner: str) -> tuple[str, bytes]:
        found = provider.document(self.uri)
        if found is None:
            raise MetadataRefused(Fault("no-such-document", f"there is no document {self.uri}"))
        return found


class Documents(Question[dict[str, str]], frozen=True, kw_only=True, tag="documents"):
    """A page of digests by URI."""

    prefix: str = ""
    after: str = ""

    def carry_out(self, provider: ProviderReader, owner: str) -> dict[str, str]:
        return provider.documents(self.prefix, self.after)


class AskProgress(Question[Progress], frozen=True, kw_only=True, tag="progress"):
    repository: Name

    def carry_out(self, provider: ProviderReader, owner: str) -> Progress:
        return provider.progress(self.repository)


class Status(Question[ProviderStatus], frozen=True, kw_only=True, tag="status"):
    def carry_out(self, provider: ProviderReader, owner: str) -> ProviderStatus:
        return provider.status()


class Whole(Question[WholePage], frozen=True, kw_only=True, tag="whole"):
    """All that a repository is to hold, as messages that replace all before; a page."""

    repository: Name
    after: tuple[int, int] = (0, 0)

    def carry_out(self, provider: ProviderReader, owner: str) -> WholePage:
        return provider.whole(self.repository, self.after, owner=owner)


class SetAside(Question[dict[str, str]], frozen=True, kw_only=True, tag="aside"):
    """Documents and resources that do not conform to the schema, each with the reason."""

    def carry_out(self, provider: Provider, owner: str) -> dict[str, str]:
        return provider.set_aside()


class AskStanding(Question[Standing], frozen=True, kw_only=True, tag="standing"):
    """How far a member of the backbone is."""

    def carry_out(self, provider: ProviderReader, owner: str) -> Standing:
        return provider.standing()


class Join(Question[Standing], frozen=True, kw_only=True, tag="join"):
    """A provider without documents becomes a member."""

    writes = True

    name: Name

    def carry_out(self, provider: Member, owner: str) -> Standing:
        return provider.join(self.name)


class MovePrefix(Question[Outcome], frozen=True, kw_only=True, tag="prefix.move"):
    """``is_lost``: the home of the prefix is, and the one that is asked takes it."""

    writes = True

    prefix: str
    to: Name
    is_lost: bool = False

    def carry_out(self, provider: Member, owner: str) -> Outcome:
        return provider.move(self.prefix, self.to, is_lost=self.is_lost)


class Digests(Question[dict[str, bytes]], frozen=True, kw_only=True, tag="digests"):
    """A page of digests by URI, for another member."""

    prefix: str
    after: str = ""

    def carry_out(self, provider: ProviderReader, owner: str) -> dict[str, bytes]:
        return provider.digests(self.prefix, self.after)


class Held(Question[dict[str, tuple[str, bytes]]], frozen=True, kw_only=True, tag="held"):
    """Documents as they are kept, for another member; the first of them, if they are long."""

    uris: Uris

    def carry_out(self, provider: ProviderReader, owner: str) -> dict[str, tuple[str, bytes]]:
        return provider.held(self.uris)


ANY: Any = Union[tuple(Question.__subclasses__())]  # noqa: UP007
_encode = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(ANY).decode


def answer_of(kind: type[Question[A]]) -> Any:
    """The type of the answer to a question."""
    return get_type_hints(kind.carry_out)["return"]


@cache
def only_reads(kind: type[Question[Any]]) -> bool:
    return get_type_hints(kind.carry_out)["provider"] is ProviderReader


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
    if isinstance(value, dict):
        return {name: shown(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [shown(each) for each in value]
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def answered(answer: object) -> bytes:
    return _encode(answer)


def read_answer(question: Question[A], body: bytes) -> A:
    found: A = msgspec.msgpack.decode(body, type=answer_of(type(question)))
    return found
