"""Parses triples of a graph profile: lists with ``;`` and ``,``, brackets, collections, paths."""

from __future__ import annotations

from typing import NamedTuple

from formats.graph.vocabulary import RDF
from yfilter.graph.filter_parser import FilterParser
from yfilter.graph.property_paths import (
    SUB_CLASS,
    SUB_PROPERTY,
    TYPE,
    Chain,
    Choice,
    Excluded,
    Inverse,
    Path,
    Repeated,
    Typed,
    elements_of,
    typed,
)
from yfilter.graph.query_ast import (
    INSTANCE_PROPERTY,
    Closure,
    GroupElement,
    Iri,
    Term,
    TriplePattern,
    Variable,
)
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.tokens import Token, TokenKind
from yfilter.language.trees import nodes_of

FIRST, REST, NIL = (Iri(RDF + name) for name in ("first", "rest", "nil"))
_VERB = "a property: an IRI, a variable or 'a'"
_INSTANCE = {Iri(INSTANCE_PROPERTY): typed(TYPE, Repeated(SUB_CLASS, "*"))}


class Above(NamedTuple):
    """``subject rdfs:subClassOf* value``, or subPropertyOf; what it asks its group tells."""

    subject: Term
    property: Iri
    value: Term
    stands_as: GroupElement  # in its group, as long as that is not known
    token: Token


class TripleParser(FilterParser):
    """``elements`` are those of the group that is read; ``visible`` the variables it has so far."""

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        super().__init__(text, limits)
        self.elements: list[GroupElement] = []
        self.above: list[Above] = []
        self.visible: dict[Variable, None] = {}
        self.has_paths = True  # and not in a template
        self.replaced: list[tuple[int, int, str]] = []  # of the tokens taken: from, to, by what
        self.repeats = 0  # of self.above, as long as it is not known what they ask
        self.unsaid_closures: list[Token] = []  # where a whole query cannot ask them
        self._triples = 0
        self._counted = 0  # ``*``, ``+`` and ``?`` of a path, but those that ask the taxonomies

    def triples(self) -> None:
        """Triples, with dots between them and perhaps behind the last."""
        while True:
            self._same_subject()
            if not self.takes(".") or not self.begins_triples():
                return

    def begins_triples(self) -> bool:
        token = self.peek()
        return self.begins_term(token) or token.is_symbol("(", "[", "<<")

    def _same_subject(self) -> None:
        token = self.peek()
        if token.is_symbol("<<"):
            raise self.unsupported("a triple as a term is", token)
        is_node = token.is_symbol("(", "[")
        subject = self._node()
        stands_alone = is_node and self.lexer.taken[-2].text not in "(["
        if not stands_alone or self._begins_verb():
            self._properties(subject)

    def _begins_verb(self) -> bool:
        token = self.peek()
        if token.kind in (TokenKind.VARIABLE, TokenKind.IRI, TokenKind.NAME):
            return True
        if token.kind is TokenKind.WORD:
            return token.text == "a"
        return self.has_paths and token.is_symbol("(", "^", "!")

    def _properties(self, subject: Term) -> None:
        """``p o, o; q o``; the last semicolons may have nothing behind them."""
        while True:
            if not self._begins_verb():
                raise self.unexpected(_VERB)
            verb = self._path() if self.has_paths else self._verb()
            while True:
                self._object(subject, verb)
                if not self.takes(","):
                    break
            if not self.takes(";"):
                return
            while self.takes(";"):
                pass
            if not self._begins_verb():
                return

    def _verb(self) -> Iri | Variable:
        token = self.peek()
        if token.kind is TokenKind.VARIABLE:
            return self.seen(self.variable())
        if token.text == "a" and token.kind is TokenKind.WORD:
            self.take()
            return TYPE
        if token.kind not in (TokenKind.IRI, TokenKind.NAME):
            raise self.unexpected(_VERB)
        return self.iri()

    def _object(self, subject: Term, verb: Path) -> None:
        """The triple goes before those of the object's own brackets."""
        place = len(self.elements)
        token = self.peek()
        if token.is_symbol("<<"):
            raise self.unsupported("a triple as a term is", token)
        value = self._node()
        made: list[GroupElement]
        match verb:
            case Iri() | Variable():
                made = [TriplePattern(subject, verb, value)]
            case Repeated(Iri() as property) if _asks_alone(verb):
                made = elements_of(subject, verb, value, self.blank)
                self.above.append(Above(subject, property, value, made[0], token))
                self.repeats += 1
            case _:
                made = elements_of(subject, verb, value, self.blank)
                self._check_above(made, token)
        self.elements[place:place] = made
        self._count(max(1, len(made)))

    def _check_above(self, made: list[GroupElement], token: Token) -> None:
        """Of classes above one that is not named, nobody knows which are meant."""
        for node in nodes_of(tuple(made)):
            if (
                isinstance(node, TriplePattern)
                and node.closure is Closure.INSTANCE_ABOVE
                and not isinstance(node.object, Iri)
            ):
                raise self.unsupported(
                    "a/^rdfs:subClassOf* of what is not named is", token, "the IRI of a class"
                )

    def _count(self, triples: int) -> None:
        self._triples += triples
        if self._triples > self.limits.steps_max:
            raise self.refusal(
                "too-long", f"more than {self.limits.steps_max} triples", self.peek().offset
            )

    # -- nodes

    def _node(self) -> Term:
        """A term, ``[ … ]`` or ``( … )``."""
        token = self.peek()
        if token.is_symbol("["):
            return self._bracket()
        if token.is_symbol("("):
            return self._collection()
        term = self.term()
        return self.seen(term) if isinstance(term, Variable) else term

    def seen(self, variable: Variable) -> Variable:
        if not variable.is_blank:
            self.visible.setdefault(variable)
            self.given.add(variable.name)
        return variable

    def _bracket(self) -> Variable:
        self.enter(self.expect("["))
        node = self.blank()
        if not self.peek().is_symbol("]"):
            self._properties(node)
        self.leave()
        self.expect("]", ", ';' or ','")
        return node

    def _collection(self) -> Term:
        self.enter(self.expect("("))
        nodes: list[Variable] = []
        while not self.takes(")"):
            node = self.blank()
            if nodes:
                self.elements.append(TriplePattern(nodes[-1], REST, node))
            nodes.append(node)
            self._object(node, FIRST)
            self._count(1)
        self.leave()
        if not nodes:
            return NIL
        self.elements.append(TriplePattern(nodes[-1], REST, NIL))
        return nodes[0]

    # -- property paths

    def _path(self) -> Path:
        token = self.peek()
        if token.kind is TokenKind.VARIABLE:
            return self._verb()
        self._counted = 0
        path = self._choice()
        if self._counted and not _asks_alone(path):
            self.is_whole = True
        return path

    def _choice(self) -> Path:
        parts = [self._chain_of_steps()]
        while self.takes("|"):
            parts.append(self._chain_of_steps())
        self._count(len(parts) - 1)
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _chain_of_steps(self) -> Path:
        parts: list[Path] = []
        starts: list[int] = []
        while True:
            start = len(self.lexer.taken)
            part = self._step()
            asked = typed(parts[-1], part) if parts else None
            if asked is None:
                parts.append(part)
                starts.append(start)
            else:
                parts[-1] = asked
                self._counted -= 1
                self._replace(starts[-1], asked)
            if not self.takes("/"):
                break
        self._count(len(parts) - 1)
        return parts[0] if len(parts) == 1 else Chain(tuple(parts))

    def _replace(self, start: int, asked: Typed) -> None:
        """Has ``a/rdfs:subClassOf*``, from a token on, stand for itself in the whole query."""
        if asked.closure is Closure.INSTANCE:
            self.replaced.append((start, len(self.lexer.taken), f"<{INSTANCE_PROPERTY}>"))
        else:
            self.unsaid_closures.append(self.lexer.taken[start])

    def _step(self) -> Path:
        if self.takes("^"):
            inner = self._repeated()
            return inner.path if isinstance(inner, Inverse) else Inverse(inner)
        return self._repeated()

    def _repeated(self) -> Path:
        path = self._path_primary()
        token = self.peek()
        if not token.is_symbol("*", "+", "?"):
            return path
        self.take()
        self._counted += 1
        return Repeated(path, token.text)

    def _path_primary(self) -> Path:
        token = self.peek()
        if token.is_symbol("("):
            self.enter(self.take())
            inner = self._choice()
            self.leave()
            self.expect(")", ", '/' or '|'")
            return inner
        if token.is_symbol("!"):
            self.take()
            return self._excluded()
        if token.kind is TokenKind.VARIABLE:
            raise self.refusal("syntax", "a variable in a path", token.offset, "an IRI")
        verb = self._verb()
        assert isinstance(verb, Iri)
        return _INSTANCE.get(verb) or verb

    def _excluded(self) -> Path:
        self.is_whole = True
        forward: list[Iri] = []
        backward: list[Iri] = []
        in_parentheses = self.takes("(")
        while True:
            is_backward = self.takes("^")
            verb = self._verb()
            assert isinstance(verb, Iri)
            (backward if is_backward else forward).append(verb)
            if not in_parentheses or not self.takes("|"):
                break
        if in_parentheses:
            self.expect(")", " or '|'")
        return Excluded(tuple(forward), tuple(backward))


def _asks_alone(path: Path) -> bool:
    """Whether a path, by itself, may ask the taxonomies."""
    return path in (Repeated(SUB_CLASS, "*"), Repeated(SUB_PROPERTY, "*"))
