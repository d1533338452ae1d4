"""TaxonomyClosure: what a taxonomy makes of a graph when it is striped (striped.py, CLOSURE).

A subject is of the classes that are stated of it, of those that the taxonomy lists for it, and of
all above these; what one of its properties says of it, all properties above that one say too.  So
that a profile asks for a class, or a property, whatever is stated, by one equality.
"""

from __future__ import annotations

from collections.abc import Iterable

from formats.graph.taxonomy import Taxonomy, above


class TaxonomyClosure:
    """Of one taxonomy; all terms are IRIs in UTF-8."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy
        self._classes: dict[bytes, list[bytes]] = {}
        self._properties: dict[bytes, list[bytes]] = {}

    def classes(self, subject: bytes, types: Iterable[bytes]) -> list[bytes]:
        """The classes of a subject ("" for a blank node) with some stated types: these, what
        the taxonomy lists it as, and all above them; each once."""
        taxonomy = self._taxonomy
        found: dict[bytes, None] = {}
        for each in (*types, *taxonomy.instances.get(subject, ())):
            found[each] = None
            if each in taxonomy.classes:
                higher = self._classes.get(each)
                if higher is None:
                    higher = self._classes[each] = above(taxonomy.classes, each)
                found.update(dict.fromkeys(higher))
        return list(found)

    def properties_above(self, name: bytes) -> list[bytes]:
        """All properties above one, without it."""
        if name not in self._taxonomy.properties:
            return []
        found = self._properties.get(name)
        if found is None:
            found = self._properties[name] = above(self._taxonomy.properties, name)
        return found

    def lists(self, iri: bytes) -> bool:
        """Whether the taxonomy lists an IRI as an instance."""
        return iri in self._taxonomy.instances
