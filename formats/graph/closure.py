"""TaxonomyClosure: what a taxonomy makes of a graph when it is striped (striped.py, CLOSURE).

A subject is of the classes that are stated of it, of those that the taxonomy lists for it, and of
all above these; what one of its properties says of it, all properties above that one say too.  So
that a profile asks for a class, or a property, whatever is stated, by one equality.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
            found.update(dict.fromkeys(self.classes_above(each)))
        return list(found)

    def classes_above(self, name: bytes) -> Sequence[bytes]:
        """All classes above one, without it, the nearest first."""
        if name not in self._taxonomy.classes:
            return ()
        found = self._classes.get(name)
        if found is None:
            found = self._classes[name] = above(self._taxonomy.classes, name)
        return found

    def properties_above(self, name: bytes) -> list[bytes]:
        """All properties above one, without it."""
        if name not in self._taxonomy.properties:
            return []
        found = self._properties.get(name)
        if found is None:
            found = self._properties[name] = above(self._taxonomy.properties, name)
        return found

    def listed(self, iri: bytes) -> Sequence[bytes]:
        """The classes that the taxonomy lists of an IRI; none if that is no instance."""
        return self._taxonomy.instances.get(iri, ())
