"""Recording: a message as the engine's view of it stood when it was bound, column by column.

The order of the columns is that of ``message.h``.  A recording owns its bytes, so that the engine
may go on to the next message.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence

from formats import ElementStream
from yfilter.index.automaton import SymbolTable
from yfilter.index.candidates import MessageView


class Column(ctypes.Structure):
    """A column of bytes."""

    _fields_ = (("data", ctypes.c_char_p), ("bytes", ctypes.c_int64))


class Recording:
    """``columns`` of one message that the index has bound last."""

    def __init__(self, view: MessageView, stream: ElementStream, symbols: SymbolTable) -> None:
        self._kept = [bytes(column) for column in _columns(view, stream, symbols)]
        self.columns = (Column * len(self._kept))(*(Column(data, len(data)) for data in self._kept))


def _columns(
    view: MessageView, stream: ElementStream, symbols: SymbolTable
) -> Sequence[memoryview | bytes]:
    elements, names, own = view.elements, view.names, view._own_count
    contents = len(stream.content_kind)
    return [
        memoryview(array("i", [elements, names, own])),
        memoryview(view.order)[:elements],
        memoryview(stream.element_parent),
        memoryview(stream.element_depth),
        memoryview(stream.element_end),
        memoryview(stream.element_name),
        memoryview(view.own_start)[: elements + 1],
        memoryview(view.own_atom)[:own],
        memoryview(view.own_asks)[:own],
        memoryview(view.own_ranges)[:own],
        memoryview(view.own_number)[:own],
        memoryview(view._signature)[:elements],
        memoryview(view._seen),
        memoryview(view.label)[:names],
        memoryview(view.attribute)[:names],
        memoryview(view.position_start)[: names + 1],
        memoryview(view.positions)[:elements],
        memoryview(view.text_first)[:elements],
        memoryview(view.text_next)[:contents],
        memoryview(view.within_first)[:elements],
        memoryview(view.within_last)[:elements],
        memoryview(stream.attribute_start),
        memoryview(stream.attribute_name),
        memoryview(stream.attribute_offset),
        stream.attribute_values,
        memoryview(stream.content_offset),
        stream.content_values,
        memoryview(symbols.seen),
    ]
