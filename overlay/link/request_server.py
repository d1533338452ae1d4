"""RequestServer: requests in, responses out, for any core.

A verb is the record of its arguments (overlay/verbs.py), with its name, right and effect, and a
function ``(connection, request, asked) -> answer or None``; None means that the answer comes later
through ``answer``.  A Refusal becomes the error of the response.  The audit log gets a line of a
Changed, of each change that an operator makes by a verb of Effect.PLACES or, for somebody else, of
Effect.OWN, and of whom a right is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import (
    Any,
    Generic,
    NamedTuple,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import UnsetType

from formats.errors import Fault, Refusal
from overlay.access import AccessTable, Right
from overlay.answers import Answer
from overlay.link.events import DiskRoom
from overlay.link.frame_fields import NAME_BYTES_MAX, Name
from overlay.link.frames import Request, Response
from overlay.link.link_layer import LinkLayer
from overlay.link.principal import Principal
from overlay.plain_text import is_plain
from overlay.unfit import in_words, quote
from overlay.verbs import Asked, Effect

A = TypeVar("A", bound=Asked)

Result: TypeAlias = dict[str, Any]
Answered: TypeAlias = "Result | Answer | Changed | None"
Answering: TypeAlias = Callable[[int, Request, A], Answered]
About: TypeAlias = Callable[[A, Principal], Iterable[tuple[str, str]]]
Failing: TypeAlias = Callable[[int, Request, Exception], None]
"""(connection, request, what it has raised)."""
Audit: TypeAlias = Callable[[Principal | None, str, str], None]
"""(asker, verb, what was done)."""
NOT_AUTHORISED = "not-authorised"
LISTED = 10  # of what a line of the audit log names


class Changed(NamedTuple):
    """A verb of Effect.SHARED has done something: the ``line`` for the audit log, the answer, and
    the verb that does the same, where that is not the one that was asked."""

    line: str
    answer: Answer | None = None
    verb: type[Asked] | None = None


@dataclass(frozen=True, slots=True)
class Verb(Generic[A]):
    """``answer`` takes the arguments as ``asked``.  ``about`` (arguments, asker) gives (scope,
    owner) of each existing thing that the arguments name, for the check of the right; None: the
    right is not bound to things.
    """

    asked: type[A]
    answer: Answering[A]
    about: About[A] | None = None


def alone(function: Callable[[A], Answered]) -> Answering[A]:
    """Of a function that takes the arguments alone."""
    return lambda connection, request, asked: function(asked)


class RequestRefused(Refusal):
    """A request that cannot be carried out, whatever it has changed before."""

    __str__ = Exception.__str__  # whoever is told adds the code

    def __init__(self, code: str, reason: str, where: str = "", expected: str = "") -> None:
        super().__init__(Fault(code, reason, expected, where=where))


class RequestServer:
    """Dispatches requests to verbs and sends the responses."""

    def __init__(
        self,
        links: LinkLayer,
        who: str,
        access: AccessTable,
        changes: Callable[[], int],
        failed: Failing,
        unsafe: Collection[str] = (),
    ) -> None:
        """``who`` is named in the refusal of an unknown verb ("a broker").

        ``failed`` is told of a verb that has raised what nobody expected before the count of
        ``changes`` to the store has changed; of the verbs ``unsafe``, which change other things
        first, the error goes on.
        """
        self._links = links
        self._who = who
        self.access = access
        self.verbs: dict[str, Verb[Any]] = {}  # those of all parts
        self._changes = changes
        self._failed = failed
        self._unsafe = unsafe
        self.disk = DiskRoom()
        self.audit: Audit  # in the commit of the change
        self.refused: Callable[[str, str, str], None]  # (asker, verb, code)

    def handle(self, connection: int, request: Request) -> None:
        before = self._changes()
        principal = self._links.principal(connection)
        about: list[tuple[str, str]] = []
        try:
            verb = self.verbs.get(request.verb)
            if verb is None:
                known = ", ".join(sorted(self.verbs))
                raise RequestRefused(
                    "unknown-verb", f"{self._who} has no verb {request.verb!r}; it has {known}"
                )
            if principal is not None and verb.about is None:
                self._check(principal, request.verb, verb.asked.right, (("", ""),))
            if verb.asked.needs_store() and self.disk.is_full:
                raise self._no_room(request.verb, "is full")
            if verb.asked.adds and self.disk.is_short:
                raise self._no_room(request.verb, "has less free than its reserve")
            asked = read(verb.asked, request.arguments)
            if principal is not None and verb.about is not None:
                about += verb.about(asked, principal)
                self._check(principal, request.verb, asked.right_taken, about)
            result = verb.answer(connection, request, asked)
            if isinstance(result, Changed):
                done = result.verb or verb.asked
                assert done.effect is Effect.SHARED, done.verb
                self.audit(principal, done.verb, result.line)
                result = result.answer
            elif self._changes() != before and self._is_of_operator(principal, verb.asked, about):
                self.audit(principal, request.verb, _line(asked, about))
        except Exception as raised:
            is_changed = self._changes() != before
            if (
                isinstance(raised, RequestRefused)
                and raised.code == NOT_AUTHORISED
                and not self.disk.is_full
            ):
                self.refused(str(principal), request.verb, raised.code)
            if isinstance(raised, Refusal) and (
                isinstance(raised, RequestRefused) or not is_changed
            ):
                self.refuse(connection, request.request, raised)
            elif is_changed or request.verb in self._unsafe:
                raise
            else:
                self._failed(connection, request, raised)
        else:
            if result is not None:
                self.answer(connection, request.request, result)

    def _no_room(self, verb: str, why: str) -> RequestRefused:
        return RequestRefused(
            "disk-full", f"{verb}: the disk of {self._who} {why}; ask again later"
        )

    def principal(self, connection: int) -> Principal | None:
        """Who asks; None without TLS."""
        return self._links.principal(connection)

    def is_bounded(self, connection: int) -> bool:
        """Whether quotas are for whoever asks: not without TLS, and not for operators."""
        principal = self.principal(connection)
        return principal is not None and not self.access.now.may(principal, Right.OPERATE)

    def _is_of_operator(
        self, principal: Principal | None, asked: type[Asked], about: Iterable[tuple[str, str]]
    ) -> bool:
        """Whether such a change is for the audit log."""
        if asked.effect is not Effect.OWN:
            return asked.effect is Effect.PLACES
        if principal is None or not self.access.now.may(principal, Right.OPERATE):
            return False
        own = ("user/", f"user/{principal.name}", str(principal))
        return any(owner not in own for _, owner in about)

    def _check(
        self, principal: Principal, verb: str, right: Right, about: Iterable[tuple[str, str]]
    ) -> None:
        """RequestRefused "not-authorised" unless they may ask this."""
        for scope, owner in about:
            if not self.access.now.may(principal, right, scope, owner):
                what = f" {scope}" if scope else f" what is of {owner}" if owner else ""
                raise RequestRefused(
                    NOT_AUTHORISED,
                    f"{verb}: {principal} may not {right}{what}; an operator can allow it "
                    "(onyx access grant)",
                )

    def refuse(self, connection: int, request: str, refusal: Refusal) -> None:
        response = Response(request=request, ok=False, result=refusal.answer())
        self._links.reply(connection, response)

    def answer(self, connection: int, request: str, result: Result | Answer) -> None:
        if isinstance(result, Answer):
            result = result.result()
        self._links.reply(connection, Response(request=request, ok=True, result=result))


def _line(asked: Asked, about: Iterable[tuple[str, str]]) -> str:
    """What was asked, and whose things it was about, for the audit log."""
    said = [f"{name} {_shown(value)}" for name, value in asked.arguments().items()]
    owners = sorted({owner for _, owner in about})
    return ", ".join(said) + (f"; of {_shown(owners)}" if owners else "")


def _shown(value: object) -> str:
    if isinstance(value, list):
        more = f" and {len(value) - LISTED} more" if len(value) > LISTED else ""
        return " ".join(map(_shown, value[:LISTED])) + more
    if isinstance(value, bytes):
        return f"of {len(value)} bytes"
    return quote(value) if isinstance(value, str) else str(value)


def check_length(verb: str, text: str, length_max: int) -> None:
    """RequestRefused "too-long" for a text beyond the bound that the operator has set."""
    if len(text) > length_max:
        raise RequestRefused(
            "too-long", f"{verb}: the text has {len(text)} characters, at most {length_max}"
        )


# --- reading arguments ------------------------------------------------------------------------


def read(kind: type[A], arguments: Mapping[str, object], *, strict: bool = True) -> A:
    """The record of a request's arguments; RequestRefused "bad-argument" or "too-long" with the
    argument, its value, and the expected one.  Not ``strict``: numbers may be texts."""
    try:
        asked = msgspec.convert(arguments, kind, strict=strict, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        fault = in_words(kind, error, arguments)
        reason = f"{kind.verb}: {fault.reason}"
        raise RequestRefused(fault.code, reason, fault.where, fault.expected) from None
    for name in _names(kind):
        said: list[str] | str = getattr(asked, name) or []
        for value in said if isinstance(said, list) else [said]:
            _check_name(kind, name, value)
    return asked


def _check_name(kind: type[Asked], field: str, value: str) -> None:
    """RequestRefused for a name that is too long, or that a terminal would not just show."""
    what = f"{kind.verb}: {field!r}"
    if (size := len(value.encode())) > NAME_BYTES_MAX:
        raise RequestRefused("too-long", f"{what} has {size} bytes, at most {NAME_BYTES_MAX}")
    if not is_plain(value):
        expected = "one line of characters that are shown"
        said = f"{what} is {quote(value)}; expected {expected}"
        raise RequestRefused("bad-argument", said, field, expected)


@cache
def _names(kind: type[Asked]) -> tuple[str, ...]:
    """The fields that are bounded by their bytes."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(name for name, hint in hints.items() if _is_name(hint))


def _is_name(hint: Any) -> bool:
    """Also where it may be left out, with a line of help, and in a list."""
    if UnsetType in get_args(hint):
        return any(map(_is_name, get_args(hint)))
    if get_origin(listed := next(iter(get_args(hint)), None)) is list:
        return any(map(_is_name, get_args(listed)))
    (bound,) = get_args(Name)[1:]
    return bound in getattr(hint, "__metadata__", ())
