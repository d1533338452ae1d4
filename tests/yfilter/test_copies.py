"""``copy … modify … return …`` against an independent reading of XQuery Update on a plain tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from xml.sax.saxutils import escape, quoteattr

import pytest

from demo.oracle import canonical
from formats.text import parse_text
from tests.yfilter.evaluated import select
from yfilter.compiled_deciders import render
from yfilter.errors import MatchLimitExceeded
from yfilter.language.matching_path import matching_path
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse


def results(text: str, message: bytes, limits: EvaluationLimits | None = None) -> list[bytes]:
    profile, stream = parse_profile(text), parse_text(message)
    bindings = [node.number for node in select(matching_path(profile), stream)]
    return render(profile, stream, bindings, limits or EvaluationLimits())


# -- the reference


@dataclass(eq=False)
class Tree:
    """``kind``: e, a, t or c; ``above`` is None for what has no parent."""

    kind: str
    name: str = ""
    value: str = ""
    attributes: list[Tree] = field(default_factory=list)
    children: list[Tree] = field(default_factory=list)
    above: Tree | None = None

    def nodes(self) -> list[Tree]:
        """In document order, as XPath has them."""
        found = [self, *self.attributes]
        for child in self.children:
            found += child.nodes()
        return found

    def text(self) -> str:
        if self.kind == "e":
            attributes = "".join(f" {a.name}={quoteattr(a.value)}" for a in self.attributes)
            inside = "".join(child.text() for child in self.children)
            return f"<{self.name}{attributes}>{inside}</{self.name}>"
        return escape(self.value) if self.kind == "t" else f"<!--{self.value}-->"


class NotAllowedError(Exception):
    """An error of XQuery Update."""


@dataclass
class Change:
    kind: str
    target: Tree
    name: str = ""
    items: tuple[Tree, ...] = ()


def apply(changes: list[Change]) -> None:
    """In the order of XQuery Update Facility 1.0, section 3.2.2."""
    for kind in ("rename", "replace", "value"):
        targets = [change.target for change in changes if change.kind == kind]
        if len(set(targets)) < len(targets):
            raise NotAllowedError
    for change in changes:
        target, above = change.target, change.target.above
        attributes = [item for item in change.items if item.kind == "a"]
        if change.kind in ("before", "after") and (above is None or target.kind == "a"):
            raise NotAllowedError
        if change.kind in ("into", "first", "last") and target.kind != "e":
            raise NotAllowedError
        if change.kind == "rename" and target.kind not in "ea":
            raise NotAllowedError
        if change.kind == "replace":
            wrong = [item for item in change.items if (item.kind == "a") != (target.kind == "a")]
            if above is None or wrong:
                raise NotAllowedError
        elif attributes:
            owner = above if change.kind in ("before", "after") else target
            assert owner is not None
            owner.attributes += attributes
    for change in changes:
        content = [item for item in change.items if item.kind != "a"]
        match change.kind:
            case "into":
                change.target.children += content
            case "value" if change.target.kind != "e":
                change.target.value = change.name
            case "rename":
                change.target.name = change.name
    for kind in ("before", "after", "first", "last"):
        chosen = [change for change in changes if change.kind == kind]
        # XQuery Update leaves the order of several open; it is that in which they are written.
        for change in reversed(chosen) if kind in ("after", "first") else chosen:
            content = [item for item in change.items if item.kind != "a"]
            owner = change.target if kind in ("first", "last") else change.target.above
            assert owner is not None
            place = {"first": 0, "last": len(owner.children)}.get(kind)
            if place is None:
                place = owner.children.index(change.target) + (kind == "after")
            owner.children[place:place] = content
    for kind in ("replace", "value", "delete"):
        for change in (change for change in changes if change.kind == kind):
            target, above = change.target, change.target.above
            if kind == "value" and target.kind == "e":
                target.children = [Tree("t", value=change.name)]
            elif kind != "value" and above is not None:
                siblings = above.attributes if target.kind == "a" else above.children
                if target in siblings:
                    place = siblings.index(target)
                    siblings[place : place + 1] = change.items


def check_attributes(tree: Tree) -> None:
    names = [attribute.name for attribute in tree.attributes]
    if len(set(names)) < len(names):
        raise NotAllowedError
    for child in tree.children:
        check_attributes(child)


def random_tree(rng: Random, depth: int = 0, above: Tree | None = None) -> Tree:
    tree = Tree("e", rng.choice("abc"), above=above)
    for name in rng.sample("xyz", rng.randint(0, 2)):
        tree.attributes.append(Tree("a", name, rng.choice(("1", "v w")), above=tree))
    for _ in range(rng.randint(0, 3) if depth < 3 else 0):
        last = tree.children[-1].kind if tree.children else ""
        kind = rng.choice("eec" if last == "t" else "eeetc")
        if kind == "e":
            tree.children.append(random_tree(rng, depth + 1, tree))
        else:
            tree.children.append(Tree(kind, value=rng.choice(("k", "m n")), above=tree))
    return tree


_WORDS = {
    "into": "into",
    "first": "as first into",
    "last": "as last into",
    "before": "before",
    "after": "after",
}


def random_change(rng: Random, nodes: list[Tree]) -> tuple[Change, str]:
    number = rng.randrange(len(nodes))
    target = nodes[number]
    path = f"($c/descendant-or-self::node() | $c/descendant-or-self::*/@*)[{number + 1}]"
    kind = rng.choice(("delete", "delete", "replace", "value", "rename", *_WORDS, *_WORDS))
    if kind == "delete":
        return Change(kind, target), f"delete node {path}"
    if kind == "rename":
        name = rng.choice("pqx")
        return Change(kind, target, name), f'rename node {path} as "{name}"'
    if kind == "value":
        return Change(kind, target, "5"), f"replace value of node {path} with 5"
    items, texts = [], []
    if rng.random() < (0.5 if target.kind == "a" else 0.15):
        items.append(Tree("a", rng.choice("xuv"), "new"))
        texts.append(f'attribute {items[-1].name} {{"new"}}')
    if target.kind != "a" or rng.random() < 0.3:
        for _ in range(rng.randint(0, 2)):
            items.append(Tree("e", rng.choice("mn"), children=[Tree("t", value="in")]))
            texts.append(f"<{items[-1].name}>in</{items[-1].name}>")
    written = f"({', '.join(texts)})"
    if kind == "replace":
        return Change(kind, target, items=tuple(items)), f"replace node {path} with {written}"
    change = Change(kind, target, items=tuple(items))
    return change, f"insert node {written} {_WORDS[kind]} {path}"


@pytest.mark.parametrize("seed", range(400))
def test_random_changes_give_what_the_reference_gives(seed: int) -> None:
    rng = Random(seed)
    tree = random_tree(rng)
    message = tree.text().encode()
    chosen = [random_change(rng, tree.nodes()) for _ in range(rng.randint(0, 4))]
    text = f"copy $c := /* modify ({', '.join(part for _, part in chosen)}) return $c"
    try:
        apply([change for change, _ in chosen])
        check_attributes(tree)
        expected = [canonical(tree.text().encode())]
    except NotAllowedError:
        expected = []
    found = [canonical(result) for result in results(text, message)]
    assert found == expected, (text, message)
    assert results(unparse(parse_profile(text)), message) == results(text, message)


# -- what the reference does not say

MESSAGE = b"""<!--b--><m xmlns:t="urn:t" xmlns="urn:d" id="1"><a t:x="1">one</a><t:b/>
<n xmlns=""><img/><p>q<img/></p></n></m>"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Namespaces: names that are written down mean what they mean at their place.
        (
            (
                'declare default element namespace "urn:d"; for $a in /m/a'
                " return copy $c := $a modify "
                '(rename node $c as "z", insert node <y/> into $c) return $c'
            ),
            ['<z xmlns="urn:d" xmlns:t="urn:t" t:x="1">one<y/></z>'],
        ),
        (
            (
                'declare namespace u = "urn:u"; for $a in /*/*:a return copy $c := $a modify '
                '(rename node $c as "u:z", rename node $c/@* as "u:k") return $c'
            ),
            ['<u:z xmlns:u="urn:u" xmlns:t="urn:t" xmlns="urn:d" u:k="1">one</u:z>'],
        ),
        (
            "for $a in /*/*:a return copy $c := $a modify rename node $c as 'z' return $c",
            ['<z xmlns:t="urn:t" t:x="1">one</z>'],
        ),
        (
            (
                "for $a in /*/*:a return copy $c := $a modify rename node $c/@* as "
                "QName('urn:k', concat('k:', 'l')) return $c"
            ),
            ['<a xmlns="urn:d" xmlns:k="urn:k" k:l="1">one</a>'],
        ),
        (
            "for $n in //n return copy $c := $n modify insert node //*:b into $c/p return $c",
            ['<n><img/><p>q<img/><t:b xmlns:t="urn:t"/></p></n>'],
        ),
        # Several copies; the message and the other copies stay as they are.
        (
            (
                "for $n in //n return copy $c := $n, $d := $c/p modify (delete node $c//img, "
                "rename node $d as 'd') return <r>{$c, $d, $n}</r>"
            ),
            [
                "<r><n><p>q</p></n><d>q<img/></d><n><img/><p>q<img/></p></n></r>",
            ],
        ),
        # A copy has nothing above it, and is another node.
        (
            (
                "for $n in //n return copy $c := $n modify () return "
                "<r>{count($c/..), $c is $n, count($c/ancestor-or-self::*), count(root($c)/p)}</r>"
            ),
            ["<r>0 false 1 1</r>"],
        ),
        # A document, with what stands beside its element.
        (
            "copy $c := $msg modify (delete node $c/*/node(), delete node $c/comment()) return $c",
            ['<m xmlns="urn:d" id="1"/>'],
        ),
        ("copy $c := $msg modify delete node $c/* return $c", []),
        # Attributes and texts alone.
        (
            (
                "for $n in /* return <r>{copy $c := $n/@id modify (rename node $c as 'k', "
                "replace value of node $c with (1, 2)) return $c}</r>"
            ),
            ['<r k="1 2"/>'],
        ),
        (
            (
                "for $n in //n/p return <r>{copy $c := $n/text() modify replace value of node $c "
                "with 'z' return ($c, string($c))}</r>"
            ),
            ["<r>zz</r>"],
        ),
        # What is changed can be looked into.
        (
            (
                "for $n in //n return copy $c := $n modify insert node <k/> after $c/p "
                "return <r>{count($c/*), name($c/*[3]), count($c/k/preceding-sibling::*)}</r>"
            ),
            ["<r>3 k 2</r>"],
        ),
        # In branches and in clauses; what is done depends on the message as it was.
        (
            (
                "for $n in //n return copy $c := $n modify for $i in $c//img return "
                "if ($i/..[self::p]) "
                "then (delete node $i, insert node <gone/> before $i) else typeswitch ($i) "
                "case element(img) return rename node $i as 'pic' default return () return $c"
            ),
            ["<n><pic/><p>q<gone/></p></n>"],
        ),
        # A copy within a copy.
        (
            (
                "for $n in //n return copy $c := $n modify insert node (copy $d := $n/p modify "
                "delete node $d/img return $d) into $c return $c"
            ),
            ["<n><img/><p>q<img/></p><p>q</p></n>"],
        ),
        # Errors: nothing, or several, to copy or to change; what is in no copy.
        ("for $n in //n return copy $c := $n/z modify () return $n", []),
        ("for $n in //n return copy $c := $n//img modify () return $n", []),
        ("for $n in //n return copy $c := $n modify delete node $c/z return $c/p", None),
        ("for $n in //n return copy $c := $n modify rename node $c/z as 'y' return $n", []),
        ("for $n in //n return copy $c := $n modify rename node $c//img as 'y' return $n", []),
        ("for $n in //n return copy $c := $n modify delete node $n/p return $n", []),
    ],
)
def test_examples(text: str, expected: list[str] | None) -> None:
    found = results(text, MESSAGE)
    if expected is None:
        assert len(found) == 1
    else:
        assert [*map(canonical, found)] == [canonical(one.encode()) for one in expected]
    assert results(unparse(parse_profile(text)), MESSAGE) == found


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("replace node $c with <x/>", "XUDY0009"),
        ("replace node $c/a/@k with <x/>", "XUTY0011"),
        ("replace node $c/b with $c/a/@k", "XUTY0010"),
        ("replace node $c/b with <x/>, replace node $c/b with <y/>", "XUDY0016"),
        ("replace value of node $c/b with 1, replace value of node $c/b with 2", "XUDY0017"),
        ("rename node $c/b/text() as 'x'", "XUTY0012"),
        ("rename node $c/b as 'x', rename node $c/b as 'y'", "XUDY0015"),
        ("insert node <x/> before $c/a/@k", "XUTY0006"),
        ("insert node <x/> before $c", "XUDY0029"),
        ("insert node $c/a/@k into $c/a", "XUDY0021"),
    ],
)
def test_errors_are_those_of_xquery_update(change: str, code: str) -> None:
    text = f"copy $c := $m modify ({change}) return $c"
    text = f"for $m in /m return <r>{{try {{{text}}} catch err:{code} {{'caught'}}}}</r>"
    assert results(text, b'<m><a k="1"/><b>2</b></m>') == [b"<r>caught</r>"]


def test_attributes_comments_and_instructions_are_changed_as_elements_are() -> None:
    text = (
        "for $m in /m return copy $c := $m modify (replace node $c/p/@f with $m/n/@g, "
        "rename node $c/p/processing-instruction() as 'z', "
        "replace value of node $c/p/comment() with 'e') return $c/p"
    )
    message = b'<m><p f="1"><?y one?><!--d--></p><n g="2"/></m>'
    assert results(text, message) == [b'<p g="2"><?z one?><!--e--></p>']


def test_what_is_inserted_again_and_again_is_bounded() -> None:
    """Each copy doubles the one before; bytes are counted before they are there."""
    message = b"<a>" + b"x" * 1000 + b"</a>"
    body = "$a"
    for number in range(30):
        body = (
            f"(copy $c{number} := {body} modify insert node $c{number}/node() into $c{number} "
            f"return $c{number})"
        )
    limits = EvaluationLimits(bytes_max=100_000)
    with pytest.raises(MatchLimitExceeded) as exceeded:
        results(f"for $a in /a return {body}", message, limits)
    assert exceeded.value.code == "result-too-large"


def test_a_deep_copy_is_changed_at_its_bottom() -> None:
    message = b"<a>" * 250 + b"<img/>" + b"</a>" * 250
    text = "copy $c := /a modify delete node $c//img return $c"
    assert canonical(results(text, message)[0]) == canonical(message.replace(b"<img/>", b""))
