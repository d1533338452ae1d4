"""Random grammars written as DTD, RELAX NG and XSD, and random messages that are valid."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

NAMES = ("a", "b", "c", "d", "e")
WORDS = ("x", "y", "z")


@dataclass(frozen=True)
class Rule:
    """An element: ``children`` may each stand there any number of times, in this order."""

    children: tuple[str, ...]
    text: bool
    id: tuple[str, ...] | None  # the values of the attribute id; None: there is no such attribute
    number: bool  # whether there is an attribute n


class Grammar:
    """One rule for each of some names; the first is the root element."""

    def __init__(self, rng: Random) -> None:
        names = rng.sample(NAMES, rng.randint(2, len(NAMES)))
        self.root = names[0]
        self.rules = {}
        for name in names:
            children = tuple(rng.sample(names, rng.randint(0, min(3, len(names)))))
            values = tuple(rng.sample(WORDS, rng.randint(1, 2))) if rng.random() < 0.6 else None
            self.rules[name] = Rule(children, rng.random() < 0.4, values, rng.random() < 0.5)

    def message(self, rng: Random) -> str:
        budget = [rng.randint(1, 30)]
        return self._element(rng, self.root, budget, 0)

    def _element(self, rng: Random, name: str, budget: list[int], depth: int) -> str:
        budget[0] -= 1
        rule = self.rules[name]
        attributes = ""
        if rule.id and rng.random() < 0.7:
            attributes += f' id="{rng.choice(rule.id)}"'
        if rule.number and rng.random() < 0.7:
            attributes += f' n="{rng.randint(1, 4)}"'
        parts = []
        for child in rule.children:
            while budget[0] > 0 and depth < 7 and rng.random() < 0.6:
                parts.append(self._element(rng, child, budget, depth + 1))
                if rng.random() < 0.2:
                    parts.append(rng.choice(WORDS) if rule.text else rng.choice((" ", "<!--c-->")))
        if rule.text and rng.random() < 0.6:
            parts.append(rng.choice(WORDS))
        return f"<{name}{attributes}>{''.join(parts)}</{name}>"

    def dtd(self) -> str:
        lines = []
        for name, rule in self.rules.items():
            if rule.text:
                model = f"({'|'.join(('#PCDATA', *rule.children))})*"
            elif rule.children:
                model = f"({','.join(f'{child}*' for child in rule.children)})"
            else:
                model = "EMPTY"
            lines.append(f"<!ELEMENT {name} {model}>")
            if rule.id:
                lines.append(f"<!ATTLIST {name} id ({'|'.join(rule.id)}) #IMPLIED>")
            if rule.number:
                lines.append(f"<!ATTLIST {name} n CDATA #IMPLIED>")
        return "\n".join(lines)

    def relaxng(self) -> str:
        defines = "".join(f'<define name="{name}">{self._ng(name)}</define>' for name in self.rules)
        return (
            '<grammar xmlns="http://relaxng.org/ns/structure/1.0">'
            f'<start><ref name="{self.root}"/></start>{defines}</grammar>'
        )

    def _ng(self, name: str) -> str:
        rule = self.rules[name]
        content = "".join(
            f'<zeroOrMore><ref name="{child}"/></zeroOrMore>' for child in rule.children
        )
        if rule.text:
            content = f"<mixed>{content}</mixed>" if content else "<text/>"
        if rule.id:
            values = "".join(f"<value>{value}</value>" for value in rule.id)
            content += (
                f'<optional><attribute name="id"><choice>{values}</choice></attribute></optional>'
            )
        if rule.number:
            content += '<optional><attribute name="n"/></optional>'
        return f'<element name="{name}">{content or "<empty/>"}</element>'

    def xsd(self) -> str:
        elements = "".join(map(self._xsd_element, self.rules))
        return f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{elements}</xs:schema>'

    def _xsd_element(self, name: str) -> str:
        rule = self.rules[name]
        content = "".join(
            f'<xs:element ref="{child}" minOccurs="0" maxOccurs="unbounded"/>'
            for child in rule.children
        )
        if rule.text or rule.children:
            content = f"<xs:sequence>{content}</xs:sequence>"
        if rule.id:
            values = "".join(f'<xs:enumeration value="{value}"/>' for value in rule.id)
            content += (
                '<xs:attribute name="id"><xs:simpleType><xs:restriction base="xs:NMTOKEN">'
                f"{values}</xs:restriction></xs:simpleType></xs:attribute>"
            )
        if rule.number:
            content += '<xs:attribute name="n" type="xs:integer"/>'
        mixed = ' mixed="true"' if rule.text else ""
        type_ = f"<xs:complexType{mixed}>{content}</xs:complexType>"
        return f'<xs:element name="{name}">{type_}</xs:element>'
