"""Messages of a DocumentSchema: trees grown until they are as long as asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from benchmarks.workload.schema import DocumentSchema

DEPTH_MAX = 8
_CHILDREN_MAX = 9
_HEADER = '<?xml version="1.0"?>\n'


@dataclass(slots=True)
class _Node:
    name: str
    attributes: list[tuple[str, str]]
    depth: int
    text: str = ""
    children: list[_Node] = field(default_factory=list)

    def own_bytes(self) -> int:
        return 2 * len(self.name) + 5 + sum(len(a) + len(v) + 4 for a, v in self.attributes)


def make_messages(schema: DocumentSchema, seed: int, number: int, size: int) -> list[bytes]:
    """So many messages of about ``size`` bytes each."""
    random = Random(f"messages {seed}")
    return [make_message(schema, random, size) for _ in range(number)]


def make_message(schema: DocumentSchema, random: Random, size: int) -> bytes:
    """One message of about ``size`` bytes, valid by the schema, up to DEPTH_MAX deep."""
    tree = _Tree(schema, random)
    while tree.size < size:
        tree.grow()
    parts = [_HEADER]
    _write(tree.root, parts)
    return "".join(parts).encode()


class _Tree:
    """``unfinished`` are the elements that may get another child, the youngest last."""

    def __init__(self, schema: DocumentSchema, random: Random) -> None:
        self._schema = schema
        self._random = random
        self.size = len(_HEADER)
        self.root = self._node(schema.root, 1)
        self._unfinished = [self.root]

    def grow(self) -> None:
        """One more child, mostly of an element that is young: depth first, but not strictly."""
        random, unfinished = self._random, self._unfinished
        if not unfinished:
            unfinished.append(self.root)
        if random.random() < 0.85:
            back = min(int(random.expovariate(0.25)), len(unfinished) - 1)
            index = len(unfinished) - 1 - back
        else:
            index = random.randrange(len(unfinished))
        parent = unfinished[index]
        if len(parent.children) >= _CHILDREN_MAX and parent is not self.root:
            del unfinished[index]
            return
        child = self._node(random.choice(self._schema.children[parent.name]), parent.depth + 1)
        parent.children.append(child)
        may_have_children = child.depth < DEPTH_MAX and self._schema.children[child.name]
        if may_have_children and random.random() < 0.8:
            unfinished.append(child)
        else:
            self._write_text(child)
        if not parent.text and random.random() < 0.04:
            parent.text = self._prose(4)
            self.size += len(parent.text)

    def _node(self, name: str, depth: int) -> _Node:
        random, schema = self._random, self._schema
        attributes = [
            (attribute, schema.domains[attribute].draw(random))
            for attribute, probability in schema.types[name].attributes
            if random.random() < probability
        ]
        node = _Node(name, attributes, depth)
        self.size += node.own_bytes()
        return node

    def _write_text(self, node: _Node) -> None:
        domain = self._schema.types[node.name].text
        words = self._random.randint(3, 14)
        node.text = self._prose(words) if domain is None else domain.draw(self._random)
        self.size += len(node.text)

    def _prose(self, words: int) -> str:
        return " ".join(self._random.choice(self._schema.vocabulary) for _ in range(words))


def _write(node: _Node, parts: list[str]) -> None:
    parts.append("<" + node.name)
    parts.extend(f' {name}="{value}"' for name, value in node.attributes)
    if not node.children and not node.text:
        parts.append("/>")
        return
    parts.append(">" + node.text)
    for child in node.children:
        _write(child, parts)
    parts.append(f"</{node.name}>")
