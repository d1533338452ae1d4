"""Why something could not be done, as the program and its Python interface say it.

Every error carries the exit code of the command line (2 as argparse has it, otherwise the numbers
of ``sysexits.h``), so that a script can tell a refused profile from a network that is down.
``str()`` is what a person reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yfilter.errors import Fault

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


class UserError(Exception):
    """Base of all errors of this package: things that a person can do something about.

    ``exit_code`` is how the command line ends for it.
    """

    exit_code = EXIT_SOFTWARE

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        if exit_code is not None:
            self.exit_code = exit_code


class UsageError(UserError):
    """Arguments that make no sense, alone or together."""

    exit_code = EXIT_USAGE


class UnreadableInput(UserError):
    """A file that was named and cannot be read."""

    exit_code = EXIT_NO_INPUT


class UnwritableOutput(UserError):
    """A file that cannot be written."""

    exit_code = EXIT_CANNOT_CREATE


class CommandFailed(UserError):
    """A command that was to deal with something did not."""

    exit_code = EXIT_DATA


class DataDirectoryInUse(UserError):
    """A data directory belongs to one process at a time, and another one has it."""

    exit_code = EXIT_BUSY


class DataDirectoryError(UserError):
    """A data directory that cannot be used for this network."""

    exit_code = EXIT_CONFIG


class StoreUnusable(UserError):
    """The store of a process cannot be opened, or holds what no process of this kind wrote."""

    exit_code = EXIT_STORE


class StoreGone(StoreUnusable):
    """It has less than it has had, or something else: acknowledged messages may be lost."""


class JournalFull(UserError):
    """So much waits for its outcome in a publisher's journal that nothing more may."""

    exit_code = EXIT_BUSY


class LeaseLost(UserError):
    """Another process goes on with the rows of this one, or may: it has ended, and can wait as the
    standby."""

    exit_code = EXIT_BUSY


class LaunchError(UserError):
    """A network that did not come up, or a process of it that does not stay up.

    ``node`` is the process that failed ("" when it is not one); ``last_lines`` what it said last.
    """

    exit_code = EXIT_SOFTWARE

    def __init__(self, reason: str, node: str = "", last_lines: tuple[str, ...] = ()) -> None:
        said = "".join(f"\n    {line}" for line in last_lines)
        super().__init__(reason + (f"; it said last:{said}" if said else ""))
        self.node = node
        self.last_lines = last_lines


class NetworkUnreachable(UserError):
    """Nobody answers at an address, or not as an Onyx process would."""

    exit_code = EXIT_UNAVAILABLE


class RequestFailed(UserError):
    """The network answered and said no.

    ``code`` is a stable word for machines ("unknown-profile", "too-many-sources", ...),
    ``reason`` the sentence for people.
    """

    exit_code = EXIT_DATA

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{reason} [{code}]")
        if code == "not-authorised":
            self.exit_code = EXIT_NO_PERMISSION
        self.code = code
        self.reason = reason


class NotAuthenticated(RequestFailed):
    """The network takes nobody who does not show who they are, and we have not."""

    exit_code = EXIT_NO_PERMISSION

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
        super().__init__(code, reason)
        self.args = (reason,)
        self.fault = fault
        self.refusal = fault.code
        self.line = fault.line
        self.column = fault.column
        self.expected = fault.expected


class ProfilesNotAccepted(RequestFailed):
    """Some of many profiles were refused; ``refused`` says why, by place from 0."""

    def __init__(self, refused: Mapping[int, str]) -> None:
        place, why = next(iter(refused.items()))
        super().__init__("profiles-refused", f"{len(refused)} are refused; number {place}: {why}")
        self.refused = refused


def leaves(error: BaseException) -> list[BaseException]:
    """All errors in a group (of groups), or what was given."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves(inner)]
    return [error]
