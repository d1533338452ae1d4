"""ProfileWriter: text of profiles about elements that exist somewhere.

One writer writes one profile: it gives each namespace that is needed a prefix, or declares the
most used one as the default, and puts the declarations before the body.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from lxml import etree

from demo.independent_parse import Element

# Elements deeper than this are asked for with ``//``; the language bounds the steps of a profile.
_STEPS_MAX = 30


class ProfileWriter:
    """Names, paths and literals for one profile, with the namespaces they need."""

    def __init__(self, random: Random, default_namespace: str | None = None) -> None:
        """``default_namespace`` is declared as such; then no element without one can be named."""
        self._random = random
        self._default = default_namespace
        self._default_used = False
        self._prefixes: dict[str, str] = {}

    def finish(self, body: str) -> str:
        """The body behind its prolog."""
        lines = []
        if self._default is not None and self._default_used:
            lines.append(f"declare default element namespace {literal(self._default)};")
        for namespace, prefix in self._prefixes.items():
            lines.append(f"declare namespace {prefix} = {literal(namespace)};")
        return "\n".join([*lines, body])

    def name(self, element: Element) -> str:
        """The element's name as a name test."""
        name = etree.QName(element)
        local = str(name.localname)
        if not name.namespace:
            # Under a default namespace an unprefixed name would be another one.
            return f"*:{local}" if self._default is not None else local
        if name.namespace == self._default:
            self._default_used = True
            return local
        return f"{self._prefix(name.namespace)}:{local}"

    def attribute(self, attribute: str) -> str:
        """``@name`` of an attribute given in lxml's form."""
        name = etree.QName(attribute)
        if not name.namespace:
            return f"@{name.localname}"
        return f"@{self._prefix(name.namespace)}:{name.localname}"

    def path(self, lineage: Sequence[Element]) -> str:
        """A path from the message to the last of ``lineage`` (the first is a root element).

        Exact, or with one ``*``, or with steps left out, or with a wildcard for the namespace.
        """
        names = [self.name(element) for element in lineage]
        style = self._random.choices(
            ("exact", "star", "gap", "last", "any-namespace"), (5, 2, 2, 2, 1)
        )[0]
        if len(names) > _STEPS_MAX:
            style = "last"
        if style == "star" and len(names) > 1:
            names[self._random.randrange(len(names) - 1)] = "*"
        elif style == "gap" and len(names) > 2:
            first = self._random.randint(1, len(names) - 2)
            last = self._random.randint(first, len(names) - 2)
            return "/" + "/".join(names[:first]) + "//" + "/".join(names[last + 1 :])
        elif style == "last":
            return "//" + names[-1]
        elif style == "any-namespace":
            names[-1] = f"*:{etree.QName(lineage[-1]).localname}"
        return "/" + "/".join(names)

    def relative(self, ancestor: Element, element: Element) -> str:
        """A path from an ancestor down to an element, exact or with ``.//``."""
        steps = [element]
        while (above := steps[0].getparent()) is not ancestor and above is not None:
            steps.insert(0, above)
        names = [self.name(step) for step in steps]
        if len(names) > _STEPS_MAX or (len(names) > 1 and self._random.random() < 0.4):
            return ".//" + names[-1]
        return "/".join(names)

    def _prefix(self, namespace: str) -> str:
        if namespace == "http://www.w3.org/XML/1998/namespace":
            return "xml"
        return self._prefixes.setdefault(namespace, f"n{len(self._prefixes) + 1}")


def literal(value: str) -> str:
    """A string literal."""
    return '"' + value.replace("&", "&amp;").replace('"', '""') + '"'
