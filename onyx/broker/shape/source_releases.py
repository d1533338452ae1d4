"""SourceReleases: a root broker that leaves the network takes nothing from its sources any more.

It says with which publish keys it has taken messages, and through which one it has taken all, and
closes the door; its tree ends behind that (tree_versions.py).  The registration service finds other
root brokers (source_roots.py there).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.network.publishers import Publishers
from overlay.link.frame import MOVED_KEYS
from overlay.link.frames import KeysReleased, SourceReleased
from overlay.link.link_layer import LinkLayer
from registration.catalog import REGISTRATION_KEY

MOVED = "moved"


class SourceReleases:
    def __init__(
        self,
        control: ControlPlane,
        links: LinkLayer,
        keys_of: Callable[[str], Iterable[KeysReleased]],
        publishers: Publishers,
    ) -> None:
        """``keys_of``: the publish keys of a source, which are to go along."""
        self._control = control
        self._links = links
        self._keys_of, self._publishers = keys_of, publishers

    def say(self) -> None:
        """To be called before the tree of this broker ends, and when the registration service has
        lost what it was told."""
        registration = self._control.registration
        for source, entry in self._control.sources.items():
            if entry.root != self._control.identity:
                continue
            detail = f"{source} gets another root broker"
            taken = self._publishers.send_away(source, MOVED, detail)
            if self._links.may_have(registration, MOVED_KEYS):
                for keys in (*self._publishers.released(source), *self._keys_of(source)):
                    self._links.send(registration, REGISTRATION_KEY, keys)
            released = SourceReleased(source=source, taken=taken)
            self._links.send(registration, REGISTRATION_KEY, released)
