"""Profiles derived from a folder's messages: what users of such messages could ask for.

Each profile starts from an element drawn from the messages and asks for something that is true of
it, so that it matches at least one message - except for about every eighth, which asks for what is
nowhere.  How many others match is left to chance: a root element many, a text value few.  The kinds
of profile go round, so that every part of the language occurs: structure, attributes, texts,
numbers, namespaces, ``//`` and ``*``, nested predicates, connectives, FLWOR with all its clauses,
positions, ``order by``, ``if``, computed constructors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from lxml import etree

from demo.harvest import (
    Harvest,
    is_number,
    leaf_value,
    path_from_root,
    values_of_attributes,
)
from demo.independent_parse import Element
from demo.profile_files import DemoProfile, with_header
from demo.profile_writer import ProfileWriter, literal

USERS = ("Ada", "Bo", "Cleo", "Dov", "Esme", "Finn", "Gwen", "Hal", "Ivo", "Juno", "Kai", "Lou")
NOTHING_EVERY = 8
DEPTH_OF_WILDCARDS_MAX = 30
_ATTEMPTS_PER_PROFILE = 20
_URI = re.compile(r"[A-Za-z0-9:/?#@!$&()*+,;=._~%-]+")

# Kinds that most messages match: who wants so much is taken to live near the first city, so that
# the ways to the other brokers show what is narrower.
BROAD = frozenset(("root element", "structure", "plain flwor", "wildcards", "count", "strings"))

_Kind = Callable[["_Draft"], "str | None"]


def derive_profiles(
    messages: Sequence[bytes], count: int, seed: int, cities: Sequence[str] = ()
) -> list[DemoProfile]:
    """``count`` different profiles, fewer only when there is not enough in the messages.

    Users are near the ``cities`` in turn, those with broad interests near the first.
    """
    random = Random(seed)
    harvest = Harvest(messages, random)
    profiles: dict[str, DemoProfile] = {}
    for attempt in range(count * _ATTEMPTS_PER_PROFILE):
        if len(profiles) == count or not len(harvest):
            break
        kinds = _NOTHING if len(profiles) % NOTHING_EVERY == NOTHING_EVERY - 1 else _SOMETHING
        interest, kind = kinds[attempt % len(kinds)]
        draft = _Draft(harvest, random)
        body = kind(draft)
        if body is None or body in profiles:
            continue
        number = len(profiles) + 1
        user = USERS[number % len(USERS)]
        city = _city(interest, number, cities)
        text = with_header(user, city, interest, draft.writer.finish(body))
        name = f"d{number:02}-{interest.replace(' ', '-')}"
        profiles[body] = DemoProfile(name, user, city, interest, text)
    return list(profiles.values())


def _city(interest: str, number: int, cities: Sequence[str]) -> str:
    if not cities:
        return ""
    return cities[0] if interest in BROAD else cities[number % len(cities)]


class _Draft:
    """One profile in the making."""

    def __init__(self, harvest: Harvest, random: Random) -> None:
        self._harvest = harvest
        self._random = random
        default = None
        if random.random() < 0.4:
            default = etree.QName(harvest.element()).namespace
        # The oracle's lxml can make elements in such namespaces only.
        if default is not None and _URI.fullmatch(default) is None:
            default = None
        self.writer = ProfileWriter(random, default)

    # --- paths ----------------------------------------------------------------------------

    def root(self) -> str | None:
        return "/" + self.writer.name(path_from_root(self._harvest.element())[0])

    def structure(self) -> str | None:
        return self._path(self._harvest.element())

    def wildcards(self) -> str | None:
        """Stars for all steps but the last."""
        lineage = path_from_root(self._harvest.element())[:DEPTH_OF_WILDCARDS_MAX]
        return "/*" * (len(lineage) - 1) + "/" + self.writer.name(lineage[-1])

    def attribute(self) -> str | None:
        found = self._harvest.element_with_attribute()
        if found is None:
            return None
        element, name, value = found
        test = self.writer.attribute(name)
        equal, unequal = f"{test} = {literal(value)}", f"{test} != {literal(value + '?')}"
        return f"{self._path(element)}[{self._random.choice((test, equal, equal, unequal))}]"

    def attribute_at_the_end(self) -> str | None:
        found = self._harvest.element_with_attribute()
        if found is None:
            return None
        element, name, value = found
        return f"{self._path(element)}/{self.writer.attribute(name)}[. = {literal(value)}]"

    def text(self) -> str | None:
        found = self._harvest.leaf()
        if found is None:
            return None
        element, value = found
        parent = element.getparent()
        if parent is None or self._random.random() < 0.4:
            subject = self._random.choice(("text()", "."))
            return f"{self._path(element)}[{subject} = {literal(value)}]"
        return f"{self._path(parent)}[{self.writer.name(element)} = {literal(value)}]"

    def part_of_a_text(self) -> str | None:
        found = self._harvest.leaf()
        if found is None:
            return None
        element, value = found
        words = value.split()
        function, argument = self._random.choice(
            (
                ("contains", self._random.choice(words)),
                ("starts-with", words[0]),
                ("ends-with", words[-1]),
            )
        )
        return f"{self._path(element)}[{function}(., {literal(argument)})]"

    def number(self) -> str | None:
        found = self._harvest.leaf(numeric=True)
        if found is None:
            return self._attribute_number()
        element, value = found
        return f"{self._path(element)}[{self._comparison('.', value)}]"

    def range(self) -> str | None:
        found = self._harvest.leaf(numeric=True)
        if found is None or found[0].getparent() is None:
            return self._attribute_number()
        element, value = found
        name = self.writer.name(element)
        low, high = sorted((float(value) * 0.5, float(value) * 1.5))
        path = self._path(element.getparent())
        return f"{path}[{name} >= {_decimal(low)} and {name} <= {_decimal(high)}]"

    def nested(self) -> str | None:
        outer = self._harvest.inner_element()
        if outer is None:
            return None
        first, second = self._harvest.two_below(outer)
        path = self._path(outer)
        below = self.writer.relative(outer, first)
        return f"{path}[{below}{self._detail(first)}][{self._condition(outer, second)}]"

    def connectives(self) -> str | None:
        outer = self._harvest.inner_element()
        if outer is None:
            return None
        first, second = self._harvest.two_below(outer)
        one, other = self._condition(outer, first), self._condition(outer, second)
        form = self._random.choice(
            ("{a} or {b}", "{a} and not({b} and no-such)", "not({a}) or {b}", "not(not({a}))")
        )
        return f"{self._path(outer)}[{form.format(a=one, b=other)}]"

    def count(self) -> str | None:
        outer = self._harvest.inner_element()
        if outer is None:
            return None
        child = self._random.choice([*outer.iterchildren(etree.Element)])
        many = len([*outer.iterchildren(child.tag)])
        comparison = self._random.choice((f"= {many}", f">= {many}", f"< {many + 1}"))
        return f"{self._path(outer)}[count({self.writer.name(child)}) {comparison}]"

    # --- FLWOR ----------------------------------------------------------------------------

    def plain_flwor(self) -> str | None:
        return f"for $x in $msg{self._path(self._harvest.element())} return $x"

    def flwor_where(self) -> str | None:
        outer = self._harvest.inner_element()
        if outer is None:
            return None
        first, second = self._harvest.two_below(outer)
        path = self._path(outer)
        where = self._condition_of_variable("$x", outer, first)
        returned = self.writer.relative(outer, second)
        return f"for $x in $msg{path}\nwhere {where}\nreturn {_below('$x', returned)}"

    def constructed(self) -> str | None:
        outer = self._harvest.inner_element()
        if outer is None:
            return None
        first, second = self._harvest.two_below(outer)
        attributes = values_of_attributes(outer)
        about = ""
        if attributes:
            name = self._random.choice(attributes)[0]
            about = f' about="{{$x/{self.writer.attribute(name)}}}"'
        path = self._path(outer)
        one = _below("$x", self.writer.relative(outer, first))
        other = _below("$x", self.writer.relative(outer, second))
        return (
            f"for $x in $msg{path}\nreturn <item{about}>{{{one}}}<other>{{{other}}}</other></item>"
        )

    def enclosed(self) -> str | None:
        outer = self._harvest.inner_element()
        if outer is None:
            return None
        children = [*outer.iterchildren(etree.Element)]
        child = self._random.choice(children)
        below = [child, *child.iterdescendants(etree.Element)]
        chosen = self._random.choice(below)
        path = self._path(outer)
        shown = "$y" if chosen is child else _below("$y", self.writer.relative(child, chosen))
        return (
            f"<results> {{\n  for $x in $msg{path}, $y in $x/{self.writer.name(child)}\n"
            f"  let $z := {shown}\n"
            f"  return <result>{{$z}}</result>\n}} </results>"
        )

    def strings(self) -> str | None:
        outer = self._harvest.inner_element()
        if outer is None:
            return None
        child = self.writer.name(self._random.choice([*outer.iterchildren(etree.Element)]))
        made = self._random.choice(
            (
                f'string-join($x/{child}, " | ")',
                f"count($x/{child})",
                "normalize-space(string($x))",
                "string-length(string($x))",
            )
        )
        return f"for $x in $msg{self._path(outer)}\nreturn <note>{{{made}}}</note>"

    def nested_flwor(self) -> str | None:
        outer = self._harvest.inner_element()
        if outer is None:
            return None
        child = self._random.choice([*outer.iterchildren(etree.Element)])
        name = self.writer.name(child)
        return (
            f"for $x in $msg{self._path(outer)}\n"
            f"return <list>{{for $y in $x/{name} return <entry>{{$y/text()}}</entry>}}</list>"
        )

    # --- more of XQuery -------------------------------------------------------------------

    def ordered(self) -> str | None:
        path = self._path(self._harvest.element())
        key, direction = self._random.choice(
            (("string-length(string($x))", "descending"), ("string($x)", "ascending"))
        )
        return (
            f"for $x in $msg{path}\norder by {key} {direction}, count($x/*)\n"
            'return <entry children="{count($x/*)}">{local-name($x)}</entry>'
        )

    def positions(self) -> str | None:
        """The first or last of its kind, beside all others of that name."""
        element = self._harvest.element()
        parent = element.getparent()
        if parent is None:
            return f"{self._path(element)}[1]"
        place = self._random.choice(("1", "last()", "position() < 3"))
        return f"{self._path(parent)}/{self.writer.name(element)}[{place}]"

    def numbered(self) -> str | None:
        path = self._path(self._harvest.element())
        return (
            f"for $x at $n in $msg{path}\nlet $s := normalize-space(string($x))\n"
            'return <line n="{$n}" length="{string-length($s)}">{substring($s, 1, 30)}</line>'
        )

    def computed(self) -> str | None:
        outer = self._harvest.inner_element()
        if outer is None:
            return None
        child = self.writer.name(self._random.choice([*outer.iterchildren(etree.Element)]))
        return (
            f"for $x in $msg{self._path(outer)}\n"
            f"return element {{ local-name($x) }} {{ attribute children {{ count($x/{child}) }},\n"
            f'  for $y at $n in $x/{child} return element {{ concat("n", $n) }} {{ string($y) }} }}'
        )

    def chosen(self) -> str | None:
        outer = self._harvest.inner_element()
        if outer is None:
            return None
        first, second = self._harvest.two_below(outer)
        condition = self._condition_of_variable("$x", outer, first)
        shown = _below("$x", self.writer.relative(outer, second))
        return (
            f"for $x in $msg{self._path(outer)}\n"
            f"return if ({condition}) then <yes>{{{shown}}}</yes> else <no/>"
        )

    def grouped(self) -> str | None:
        outer = self._harvest.inner_element()
        if outer is None:
            return None
        all_ = f"$msg{self._path(outer)}/*"
        return (
            f"<names> {{\n  for $v in distinct-values({all_}/local-name())\n  order by $v\n"
            f'  return <name n="{{count({all_}[local-name() = $v])}}">{{$v}}</name>\n}} </names>'
        )

    # --- nothing --------------------------------------------------------------------------

    def absent_name(self) -> str | None:
        return f"{self._path(self._harvest.element())}/no-such-element"

    def absent_value(self) -> str | None:
        found = self._harvest.element_with_attribute()
        if found is None:
            return self.absent_text()
        element, name, value = found
        test = f"{self.writer.attribute(name)} = {literal(value + ' (nowhere)')}"
        return f"{self._path(element)}[{test}]"

    def absent_text(self) -> str | None:
        element = self._harvest.element()
        return (
            f"for $x in $msg{self._path(element)}\n"
            f'where contains($x, "said nobody {self._random.randint(1, 10**6)} times")\nreturn $x'
        )

    def contradiction(self) -> str | None:
        """An element that both has a child and has not."""
        outer = self._harvest.inner_element()
        if outer is None:
            return None
        child = self.writer.name(self._random.choice([*outer.iterchildren(etree.Element)]))
        return f"{self._path(outer)}[{child}][not({child})]"

    def wrong_namespace(self) -> str | None:
        local = etree.QName(self._harvest.element()).localname
        return f"//Q{{urn:no-such-namespace}}{local}"

    # --- helpers --------------------------------------------------------------------------

    def _path(self, element: Element) -> str:
        return self.writer.path(path_from_root(element))

    def _attribute_number(self) -> str | None:
        """A comparison of an attribute, for messages that have no numbers elsewhere."""
        for _ in range(20):
            found = self._harvest.element_with_attribute()
            if found is not None and is_number(found[2]):
                element, name, value = found
                test = self._comparison(self.writer.attribute(name), value)
                return f"{self._path(element)}[{test}]"
        return None

    def _comparison(self, subject: str, value: str) -> str:
        """A comparison with a number that is true of ``value``."""
        operator, factor = self._random.choice(
            ((">=", 1), ("<=", 1), ("=", 1), (">", 0.5), ("<", 1.5), ("!=", 3))
        )
        number = float(value)
        if factor != 1 and number <= 0:
            operator = "="
        elif factor != 1:
            number *= factor
        return f"{subject} {operator} {_decimal(number)}"

    def _detail(self, element: Element) -> str:
        """A predicate true of the element, or nothing."""
        attributes = values_of_attributes(element)
        if attributes and self._random.random() < 0.6:
            name, value = self._random.choice(attributes)
            return f"[{self.writer.attribute(name)} = {literal(value)}]"
        text = leaf_value(element)
        if text is not None and self._random.random() < 0.4:
            return f"[. = {literal(text)}]"
        return ""

    def _condition(self, outer: Element, element: Element) -> str:
        """A condition on the context item ``outer`` that the element makes true."""
        below = self.writer.relative(outer, element)
        value = leaf_value(element)
        if value is not None and is_number(value) and self._random.random() < 0.6:
            return self._comparison(below, value)
        if value is not None and self._random.random() < 0.4:
            return f"{below} = {literal(value)}"
        return below + self._detail(element)

    def _condition_of_variable(self, variable: str, outer: Element, element: Element) -> str:
        return _below(variable, self._condition(outer, element))


def _below(variable: str, relative: str) -> str:
    """A relative path (and what stands behind it) from a variable."""
    return variable + relative[1:] if relative.startswith(".//") else f"{variable}/{relative}"


def _decimal(value: float) -> str:
    """A number as a literal without an exponent."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


_SOMETHING: tuple[tuple[str, _Kind], ...] = (
    ("root element", _Draft.root),
    ("structure", _Draft.structure),
    ("attribute", _Draft.attribute),
    ("text", _Draft.text),
    ("plain flwor", _Draft.plain_flwor),
    ("number", _Draft.number),
    ("nested predicates", _Draft.nested),
    ("flwor with where", _Draft.flwor_where),
    ("wildcards", _Draft.wildcards),
    ("part of a text", _Draft.part_of_a_text),
    ("new element", _Draft.constructed),
    ("connectives", _Draft.connectives),
    ("attribute value", _Draft.attribute_at_the_end),
    ("enclosing element", _Draft.enclosed),
    ("count", _Draft.count),
    ("range", _Draft.range),
    ("strings", _Draft.strings),
    ("flwor in flwor", _Draft.nested_flwor),
    ("order by", _Draft.ordered),
    ("positions", _Draft.positions),
    ("positions bound", _Draft.numbered),
    ("computed elements", _Draft.computed),
    ("if then else", _Draft.chosen),
    ("distinct values", _Draft.grouped),
)
_NOTHING: tuple[tuple[str, _Kind], ...] = (
    ("nothing absent name", _Draft.absent_name),
    ("nothing absent value", _Draft.absent_value),
    ("nothing contradiction", _Draft.contradiction),
    ("nothing absent text", _Draft.absent_text),
    ("nothing wrong namespace", _Draft.wrong_namespace),
)
