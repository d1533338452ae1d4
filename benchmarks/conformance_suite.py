"""The W3C QT3 suite as cases: what each asks, on what, and what puts it beyond the language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

_Q = "{http://www.w3.org/2010/09/qt-fots-catalog}"
# What XPath alone reads in another way ("/ < 5", strings without references) is not ours to read;
# nor what is so in XQuery 1.0 and no more in 3.1, whose meaning of its grammar the language has.
_OLD, _NEW = frozenset(("XQ10", "XQ10+")), frozenset(("XQ10+", "XQ30+", "XQ31", "XQ31+"))
_XML_VERSIONS = frozenset(("1.0", "1.0:5+"))  # names are those of its fifth edition


@dataclass(frozen=True)
class Case:
    """``beyond``: why the metadata puts it out of the language, "" if it does not; ``home``: where
    the files are that its result names."""

    name: str
    query: str
    document: Path | None
    variables: tuple[str, ...]
    namespaces: dict[str, str]
    result: etree._Element
    errors: tuple[str, ...]
    beyond: str
    home: Path


def sets_of(directory: Path) -> dict[str, Path]:
    """The sets of the catalog that are there."""
    catalog = etree.parse(directory / "catalog.xml")
    files = {
        str(node.get("name")): directory / str(node.get("file"))
        for node in catalog.iter(f"{_Q}test-set")
    }
    return {name: file for name, file in files.items() if file.is_file()}


def cases_of(directory: Path, file: Path) -> Iterator[Case]:
    root = etree.parse(file).getroot()
    environments = {
        str(node.get("name")): (node, base)
        for tree, base in (
            (etree.parse(directory / "catalog.xml").getroot(), directory),
            (root, file.parent),
        )
        for node in tree.findall(f"{_Q}environment")
    }
    shared = root.findall(f"{_Q}dependency")
    for node in root.findall(f"{_Q}test-case"):
        yield _case(node, environments, shared, file.parent)


def _case(
    node: etree._Element,
    environments: dict[str, tuple[etree._Element, Path]],
    shared: list[etree._Element],
    base: Path,
) -> Case:
    test, result = node.find(f"{_Q}test"), node.find(f"{_Q}result")
    assert test is not None and result is not None
    query = str(test.text or "")
    beyond = _beyond_by_dependencies([*shared, *node.findall(f"{_Q}dependency")])
    if test.get("file"):
        beyond = beyond or "a query in a file of its own"
    if node.find(f"{_Q}module") is not None:
        beyond = beyond or "a module"
    environment, home = node.find(f"{_Q}environment"), base
    if environment is not None and environment.get("ref"):
        environment, home = environments.get(str(environment.get("ref")), (None, base))
        if environment is None:
            beyond = beyond or "an unknown environment"
    document, variables, namespaces = None, [], {}
    if environment is not None:
        sources = environment.findall(f"{_Q}source")
        for source in sources:
            role = str(source.get("role") or "")
            document = home / str(source.get("file"))
            if role.startswith("$"):
                variables.append(role[1:])
            elif role != ".":
                beyond = beyond or "a document by its address"
            if source.get("validation"):
                beyond = beyond or "schema types"
        if len(sources) > 1:
            beyond = beyond or "several documents"
        for part in environment:
            word = etree.QName(part).localname if isinstance(part.tag, str) else ""
            if word == "namespace":
                namespaces[str(part.get("prefix"))] = str(part.get("uri"))
            elif word in ("schema", "param", "collection", "function-library", "decimal-format"):
                beyond = beyond or f"{word} in the environment"
    errors = tuple(str(error.get("code")) for error in result.iter(f"{_Q}error"))
    return Case(
        str(node.get("name")),
        query,
        document,
        tuple(variables),
        namespaces,
        result.find("*"),
        errors,
        beyond,
        base,
    )


def _beyond_by_dependencies(dependencies: list[etree._Element]) -> str:
    for dependency in dependencies:
        kind, value = str(dependency.get("type")), str(dependency.get("value"))
        satisfied = dependency.get("satisfied") != "false"
        if kind == "spec" and not (_OLD & {*value.split()} and _NEW & {*value.split()}):
            return f"needs {value}"
        if kind == "feature" and satisfied:
            return f"feature {value}"
        if kind in ("xml-version", "xsd-version") and not _XML_VERSIONS & {*value.split()}:
            return f"{kind} {value}"
        if kind == "unicode-normalization-form" and satisfied and value.startswith("FULLY"):
            return f"{kind} {value}"  # which nobody has to have
        if kind in ("language", "limits", "calendar", "format-integer-sequence", "unicode-version"):
            return kind
    return ""
