"""The writer of a message's markup: the compiled one, or plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.kernel import AVAILABLE

if TYPE_CHECKING or AVAILABLE:
    from formats.columns import declaration, subtree_writer
else:
    from formats.plain_writer import plain_declaration as declaration
    from formats.plain_writer import plain_writer as subtree_writer

__all__ = ["declaration", "subtree_writer"]
