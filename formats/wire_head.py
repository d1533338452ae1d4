"""WireHead: the head of a binary form, as its writer makes it (the reader's side is WireNames).

A name is the dictionary's where that says (namespace, local) and the prefix is that of the first
binding to the namespace; all others are the head's own, in the order of the stream.
"""

from __future__ import annotations

from array import array

from formats.element_stream import ElementStream
from formats.names import XML_NAMESPACE
from formats.wire_bytes import write_number
from formats.wire_words import WireWords

_Binding = tuple[str, str]  # prefix, namespace


class WireHead:
    """``form``: its size and its bytes; ``number`` [name of the stream] on the wire, ``declared``
    [declaration of the stream] its binding; ``count`` all name numbers there are."""

    def __init__(self, stream: ElementStream, words: WireWords) -> None:
        self.names = list(stream.names)
        self.declarations = list(stream.declarations)
        bindings: dict[_Binding, int] = {("", ""): 0, ("xml", XML_NAMESPACE): 1}
        first: dict[str, int] = {"": 0, XML_NAMESPACE: 1}
        used = [(name.prefix, name.namespace) for name in self.names]
        for binding in (*used, *self.declarations):
            number = bindings.setdefault(binding, len(bindings))
            first.setdefault(binding[1], number)
        own: list[bytes] = []
        numbers = array("i")
        for name, binding in zip(self.names, used, strict=True):
            known = words.name_numbers.get((name.namespace, name.local))
            if known is not None and first[name.namespace] == bindings[binding]:
                numbers.append(known)
            else:
                numbers.append(words.name_count + len(own))
                own.append(write_number(bindings[binding]) + _word(name.local, words))
        bound = [_word(word, words) for binding in list(bindings)[2:] for word in binding]
        form = b"".join((write_number(len(bindings) - 2), *bound, write_number(len(own)), *own))
        self.form = write_number(len(form)) + form
        self.count = words.name_count + len(own)
        self.number = numbers
        self.declared = [bindings[binding] for binding in self.declarations]


def _word(word: str, words: WireWords) -> bytes:
    number = words.string_numbers.get(word)
    if number is not None:
        return write_number(2 * number + 1)
    encoded = word.encode()
    return write_number(2 * len(encoded)) + encoded
