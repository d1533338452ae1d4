"""Why something could not be done, as the program and its Python interface say it.

Every error has a ``code``, by which ``ENDINGS`` says how the command line ends (2 as argparse has
it, otherwise the numbers of ``sysexits.h``), so that a script can tell a refused profile from a
network that is down, and with which status HTTP answers.  ``str()`` is what a person reads,
``fault`` the record of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from formats.errors import Fault, Refusal

EXIT_OK = 0
EXIT_USAGE = 2  # the command line is wrong
EXIT_DATA = 65  # a message or profile was refused
EXIT_NO_INPUT = 66  # a file that was named cannot be read
EXIT_UNAVAILABLE = 69  # the network cannot be reached
EXIT_SOFTWARE = 70  # a process failed again and again while its network came up
EXIT_SYSTEM = 71  # the system refuses what a process takes
EXIT_CANNOT_CREATE = 73  # a file cannot be written
EXIT_STORE = 74  # what a process has on disk cannot be used
EXIT_BUSY = 75  # somebody else is using it; later it may work
EXIT_NO_PERMISSION = 77  # the network does not know us, or not as somebody who may do that
EXIT_CONFIG = 78  # a topology that cannot be used, an address that is taken

_REFUSED = EXIT_DATA, 422
ENDINGS: Mapping[str, tuple[int, int]] = {
    code: (exit_code, status)
    for exit_code, status, codes in (
        (EXIT_USAGE, 400, "usage"),
        (EXIT_DATA, 400, "bad-argument bad-event-id bad-json bad-request no-tokens undecodable"),
        (EXIT_NO_PERMISSION, 401, "not-authenticated"),
        (EXIT_NO_PERMISSION, 403, "cross-site not-allowed not-authorised other-owner"),
        (EXIT_DATA, 404, "not-found unknown-backtest unknown-broker unknown-letter unknown-link"),
        (EXIT_DATA, 404, "unknown-node unknown-profile unknown-query unknown-root unknown-source"),
        (EXIT_DATA, 404, "unknown-statistics unknown-taxonomy unknown-token unknown-verb"),
        (EXIT_DATA, 404, "no-such-document no-such-repository no-such-resource no-such-rule"),
        (EXIT_DATA, 405, "method-not-allowed"),
        (EXIT_DATA, 408, "too-slow"),
        (EXIT_DATA, 409, "ambiguous-name change-under-way other-content replaced rule-in-use"),
        (EXIT_DATA, 413, "too-long"),
        (EXIT_DATA, 415, "content-encoding media-type unknown-charset unknown-format"),
        (EXIT_DATA, 421, "wrong-host"),
        (EXIT_CONFIG, 422, "topology-refused"),
        (EXIT_DATA, 429, "too-many too-many-profiles too-many-publishers too-many-sources"),
        (EXIT_NO_INPUT, 500, "unreadable-input"),
        (EXIT_SOFTWARE, 500, "failed function-failed function-over-cost source-failed"),
        (EXIT_CANNOT_CREATE, 500, "unwritable-output"),
        (EXIT_STORE, 500, "store-unusable"),
        (EXIT_BUSY, 500, "in-use"),
        (EXIT_DATA, 502, "bad-answer"),
        (EXIT_CONFIG, 500, "bad-directory"),
        (EXIT_DATA, 503, "busy disk-full"),
        (EXIT_BUSY, 503, "no-resources"),
        (EXIT_UNAVAILABLE, 503, "provider-away source-away source-lost timeout unreachable"),
    )
    for code in codes.split()
}
"""(Exit code, status of HTTP) by code; of any other, which names a fault in what was sent, 65 and
422."""


def ending(code: str) -> tuple[int, int]:
    """Exit code, and status of HTTP."""
    return ENDINGS.get(code, _REFUSED)


class UserError(Exception):
    """Base of all errors of this package: things that a person can do something about.

    ``code`` is a stable word for machines, ``reason`` the sentence for people, ``exit_code`` how
    the command line ends for it.
    """

    code = "failed"
    exit_code = EXIT_SOFTWARE

    def __init_subclass__(cls, code: str = "") -> None:
        if code:
            cls.code, cls.exit_code = code, ending(code)[0]

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.reason = message
        if exit_code is not None:
            self.exit_code = exit_code

    @property
    def fault(self) -> Fault:
        from formats.errors import Fault  # noqa: PLC0415 - only when something failed

        return Fault(self.code, self.reason)


class UsageError(UserError, code="usage"):
    """Arguments that make no sense, alone or together."""


class UnreadableInput(UserError, code="unreadable-input"):
    """A file that was named and cannot be read."""


class UnwritableOutput(UserError, code="unwritable-output"):
    """A file that cannot be written."""


@contextmanager
def file_errors(path: object, done: str = "written") -> Iterator[None]:
    """UnreadableInput ("read") or UnwritableOutput where the system refuses what is done here."""
    try:
        yield
    except OSError as error:
        kind = UnreadableInput if done == "read" else UnwritableOutput
        raise kind(f"{path} cannot be {done}: {error.strerror}") from None


class CommandFailed(UserError, code="command-failed"):
    """A command that was to deal with something did not."""


class DataDirectoryInUse(UserError, code="in-use"):
    """A data directory belongs to one process at a time, and another one has it."""


class DataDirectoryError(UserError, code="bad-directory"):
    """A data directory that cannot be used for this network."""


class StoreUnusable(UserError, code="store-unusable"):
    """The store of a process cannot be opened, or holds what no process of this kind wrote."""


class StoreGone(StoreUnusable):
    """It has less than it has had, or something else: acknowledged messages may be lost."""


class JournalFull(UserError, code="in-use"):
    """So much waits for its outcome in a publisher's journal that nothing more may."""


class LeaseLost(UserError, code="in-use"):
    """Another process goes on with the rows of this one, or may: it has ended, and can wait as the
    standby."""


class LaunchError(UserError):
    """A network that did not come up, or a process of it that does not stay up.

    ``node`` is the process that failed ("" when it is not one); ``last_lines`` what it said last.
    """

    def __init__(self, reason: str, node: str = "", last_lines: tuple[str, ...] = ()) -> None:
        said = "".join(f"\n    {line}" for line in last_lines)
        super().__init__(reason + (f"; it said last:{said}" if said else ""))
        self.node = node
        self.last_lines = last_lines


class NetworkUnreachable(UserError, code="unreachable"):
    """Nobody answers at an address, or not as an Onyx process would."""


class RequestFailed(UserError, code="refused"):
    """The network answered and said no.

    ``code`` is a stable word for machines ("unknown-profile", "too-many-sources", ...),
    ``reason`` the sentence for people, ``fault`` the fault in what was sent, if it is in that.
    """

    def __init__(self, code: str, reason: str, fault: Fault | None = None) -> None:
        super().__init__(f"{reason} [{code}]", ending(code)[0])
        self.code, self.reason, self._fault = code, reason, fault

    @property
    def fault(self) -> Fault:
        return super().fault if self._fault is None else self._fault


class NotAuthenticated(RequestFailed):
    """The network takes nobody who does not show who they are, and we have not."""

    def __init__(self, reason: str) -> None:
        super().__init__("not-authenticated", reason)
        self.args = (f"not authenticated: {reason}",)


class ProfileNotAccepted(RequestFailed):
    """A profile text was refused; ``str()`` shows the line with a caret under the place.

    ``refusal`` is the stable word for why ("syntax", "undeclared-prefix", ...), ``line`` and
    ``column`` count from 1 (0: not known), ``expected`` says what could stand there, "" if nothing
    helpful can be said.
    """

    def __init__(self, code: str, reason: str, fault: Fault) -> None:
        super().__init__(code, reason, fault)
        self.args = (reason,)
        self.refusal, self.expected = fault.code, fault.expected
        self.line, self.column = fault.line, fault.column


class ProfilesNotAccepted(RequestFailed):
    """Some of many profiles were refused; ``refused`` says why, by place from 0."""

    def __init__(self, refused: Mapping[int, str]) -> None:
        place, why = next(iter(refused.items()))
        super().__init__("profiles-refused", f"{len(refused)} are refused; number {place}: {why}")
        self.refused = refused


def exit_code_of(error: UserError | Refusal) -> int:
    if isinstance(error, UserError):
        return error.exit_code
    code = error.said()[0]
    if code == "no-plan" and getattr(error, "rule", None):  # of a query, which these rules forbid
        return EXIT_NO_PERMISSION
    return ending(code)[0]


def leaves(error: BaseException) -> list[BaseException]:
    """All errors in a group (of groups), or what was given."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves(inner)]
    return [error]
