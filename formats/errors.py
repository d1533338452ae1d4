"""The record of an error that a user meets, and the errors of messages, wire forms and schemas.

A ``Fault`` says the same at the engine, on the wire, at the command line, over HTTP and on a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

_REASON_LENGTH_MAX = 300


class Fault(msgspec.Struct, frozen=True):
    """What was refused, where, and what was expected there.

    ``code`` is a stable word ("syntax", "undeclared-prefix", "unsupported", "too-long", ...),
    ``reason`` the sentence for people, ``expected`` says what could stand there and ``hint`` what
    there is instead, ``where`` names the thing (a file, a key in it); each is "" where nothing
    helpful can be said.  ``line`` and ``column`` count from 1 (0: not known).
    """

    code: str = ""
    reason: str = ""
    expected: str = ""
    line: int = 0
    column: int = 0
    where: str = ""
    hint: str = ""

    def __str__(self) -> str:
        """``WHERE: line L, column C: reason; expected this [code]``."""
        column = f", column {self.column}" if self.column else ""
        line = f"line {self.line}{column}" if self.line else ""
        wanted = f"; expected {self.expected}" if self.expected else ""
        said = ": ".join(filter(None, (self.where, line, self.reason + wanted)))
        return f"{said} [{self.code}]" if self.code else said

    def facts(self) -> dict[str, str | int]:
        """The fields by name; of ``where`` and ``hint`` those that say something."""
        said = msgspec.structs.asdict(self)
        return {name: said[name] for name in said if said[name] or name not in ("where", "hint")}


def read_fault(said: object, usual: Fault) -> Fault:
    """What a peer says of an error; what is missing, or of another type, is as in ``usual``."""
    given = said if isinstance(said, Mapping) else {}
    known = msgspec.structs.asdict(usual)
    fit = {name: given[name] for name in known if type(given.get(name)) is type(known[name])}
    return msgspec.structs.replace(usual, **fit)


class Refusal(Exception):
    """An error that a user meets, with the ``fault`` that says it.

    ``kind`` is the code under which an answer says it, "" for the one of the fault.
    """

    kind = ""

    def __init__(self, said: Fault | str) -> None:
        """``said``: the fault, or its reason where there is no more to say."""
        fault = self.fault = Fault(reason=said) if isinstance(said, str) else said
        super().__init__(fault.reason)
        self.code, self.reason, self.expected = fault.code, fault.reason, fault.expected
        self.line, self.column, self.hint = fault.line, fault.column, fault.hint

    def __str__(self) -> str:
        return str(self.fault)

    def said(self) -> tuple[str, str]:
        """The code and the sentence of an answer."""
        return (self.kind, str(self)) if self.kind else (self.code, self.reason)

    def answer(self) -> dict[str, object]:
        """The result of a response that is not ok; ``refusal``: the fault, where it says more."""
        code, message = self.said()
        says_more = self.kind or self.fault != Fault(self.code, self.reason)
        more = {"refusal": self.fault.facts()} if says_more else {}
        return {"code": code, "message": message, **more}


@contextmanager
def about(where: str) -> Iterator[None]:
    """What is refused in here is said of ``where``, ahead of the place in it."""
    try:
        yield
    except Refusal as refusal:
        where = ": ".join(filter(None, (where, refusal.fault.where)))
        refusal.fault = msgspec.structs.replace(refusal.fault, where=where)
        raise


class FormatError(Refusal):
    """Base of all refusals of this package; a long reason is cut, since it may quote what a
    stranger sent."""

    def __init__(
        self,
        code: str,
        reason: str,
        line: int = 0,
        column: int = 0,
        where: str = "",
        hint: str = "",
    ) -> None:
        if len(reason) > _REASON_LENGTH_MAX:
            reason = reason[:_REASON_LENGTH_MAX] + "…"
        super().__init__(Fault(code, reason, "", line, column, where, hint))


class MessageRefused(FormatError):
    """An XML text that is not well-formed, or is beyond a limit."""

    kind = "message-refused"


class SchemaRefused(FormatError):
    """A source's schema that cannot be read."""

    kind = "schema-refused"


class DecodeError(FormatError):
    """Bytes that are not a valid wire form; ``offset`` is where that was noticed."""

    kind = "message-refused"

    def __init__(self, code: str, reason: str, offset: int = 0) -> None:
        super().__init__(code, reason, where=f"byte {offset}")
        self.offset = offset
