"""ArchiveFeed: which messages of this root broker are archived, and as what text.

The core only says so (``ArchiveMessage``); the shell writes (message_archive.py).  Which share of
the messages is kept depends on source and number only, so that it is the same after a restart.
"""

from __future__ import annotations

import re
from contextlib import suppress
from zlib import crc32

from formats import WireFormat
from onyx.broker.packing.codebook import Codebook
from onyx.broker.packing.parcel import Parcel
from overlay.link.events import ArchiveMessage
from overlay.link.part import Part
from overlay.topology import Topology

# An XML declaration that names another encoding than UTF-8.
_OTHER_ENCODING = re.compile(rb"^[^>]{0,200}?encoding\s*=\s*[\"'](?!utf-8[\"'])", re.IGNORECASE)


class ArchiveFeed(Part):
    """Tells the shell of the messages that are to be archived."""

    def __init__(self, topology: Topology, codebook: Codebook) -> None:
        self._codebook = codebook
        self.take_settings(topology)

    def take_settings(self, now: Topology) -> None:
        options = now.archive
        # crc32 is below 2**32: a share of 1 is every message, one of 0 none.
        self.below = int(options.share * 2**32) if options.directory is not None else 0

    def offer(self, parcel: Parcel) -> None:
        """A message was accepted; not needed when ``below`` is 0."""
        if crc32(f"{parcel.source}/{parcel.number}".encode()) < self.below:
            text = self._text(parcel)
            self.ask_shell(ArchiveMessage(parcel.source, parcel.number, text, parcel.accepted))

    def _text(self, parcel: Parcel) -> bytes:
        """As it was published where that is text in UTF-8; else written from the element stream.

        A declaration of another encoding would be wrong about the text that an archive holds.
        """
        text = parcel.in_form(WireFormat.TEXT)
        # UTF-16 may pass for UTF-8, but then every second byte is 0.
        if not _OTHER_ENCODING.match(text) and b"\0" not in text:
            with suppress(UnicodeDecodeError):
                text.decode("utf-8")
                return text
        return self._codebook.encode(parcel.source, WireFormat.TEXT, parcel.stream)
