"""RunningSettings: which limits and other settings are in force in a process, and since what.

They are those of the process's file, which it reads at its start and at SIGHUP, until the network
is told others (``onyx topology apply``).  These are stored, and hold over a new start with the same
file; a file that says something else by then is newer, and holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from overlay.link.events import TakeSettings
from overlay.link.part import Part
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table
from overlay.live_settings import live_values, with_live_settings, with_values
from overlay.topology import Topology


@dataclass(frozen=True, slots=True)
class _SettingsRow:
    """The live settings of the file, and those in force, by key."""

    file: dict[str, object]
    held: dict[str, object]


SETTINGS = Table("settings", _SettingsRow)


class RunningSettings(Part):
    """Of one process; the last of its parts, as the others take what it restores."""

    section = "settings"

    def __init__(self, file: Topology, rows: RowLog) -> None:
        """``file``: what the process was started with."""
        self.now = file
        self._file = live_values(file)
        self._rows = rows
        self.tell: Callable[[Topology], None] = lambda topology: None
        """Is told when others are in force, besides the parts and the shell."""
        self._is_stored = False

    def restore(self, rows: StoredRows) -> None:
        for _, row in rows.take(SETTINGS):
            self._is_stored = True
            if row.file == self._file:
                self._hold(*with_live_settings(self.now, with_values(self.now, row.held))[:2])
            else:
                self._forget()

    def take_file(self, file: Topology) -> tuple[list[str], list[str]]:
        """The file is read again: what of it is taken, and what takes a new start."""
        wanted, taken, left = with_live_settings(self.now, file)
        self._file = live_values(file)
        self._forget()
        if taken:
            self._hold(wanted, taken)
        return taken, left

    def take_change(self, before: Topology, after: Topology) -> None:
        """The network is told of other settings: of these what has changed."""
        old, new = live_values(before), live_values(after)
        changed = {key: new[key] for key in new if old.get(key) != new[key]}
        wanted, taken, _ = with_live_settings(self.now, with_values(self.now, changed))
        if taken:
            self._hold(wanted, taken)
            held = live_values(wanted)
            SETTINGS.put(self._rows, "live", _SettingsRow(self._file, held))
            self._is_stored = True

    def _hold(self, wanted: Topology, taken: list[str]) -> None:
        self.now = wanted
        if self.agenda is not None:
            self.agenda.take_limits(wanted.limits)
        self.tell(wanted)
        self.ask_shell(TakeSettings(wanted, tuple(taken)))

    def _forget(self) -> None:
        if self._is_stored:
            SETTINGS.delete(self._rows, "live")
            self._is_stored = False
