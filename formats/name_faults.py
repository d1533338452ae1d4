"""What is wrong with a name or a namespace binding, whatever wire form it came in."""

from __future__ import annotations

from formats.characters import find_illegal_character, is_colonless_name
from formats.names import XML_NAMESPACE, QualifiedName

XMLNS_NAMESPACE = "http://www.w3.org/2000/xmlns/"


def name_fault(name: QualifiedName, name_max: int, namespace_max: int) -> tuple[str, str] | None:
    """Code and reason of what is wrong with a name, whatever it names."""
    fault = binding_fault(name.prefix, name.namespace, name_max, namespace_max)
    if fault is None and _is_longer(name.local, name_max):
        return "name-too-long", f"more than {name_max} bytes"
    if fault is None and not is_colonless_name(name.local):
        return "bad-name", f"{name.local!r} is not a name"
    return fault


def binding_fault(
    prefix: str, namespace: str, name_max: int, namespace_max: int
) -> tuple[str, str] | None:
    """Why the prefix cannot mean the namespace: code and reason."""
    if _is_longer(prefix, name_max):
        return "name-too-long", f"more than {name_max} bytes"
    if _is_longer(namespace, namespace_max):
        return "namespace-too-long", f"more than {namespace_max} bytes"
    fault = ""
    if (prefix == "xml") != (namespace == XML_NAMESPACE):
        fault = "prefix xml and its namespace belong together"
    elif prefix == "xmlns" or namespace == XMLNS_NAMESPACE:
        fault = "prefix xmlns and its namespace are reserved"
    elif prefix and not is_colonless_name(prefix):
        fault = f"{prefix!r} is not a prefix"
    elif prefix and not namespace:
        fault = f"prefix {prefix} without a namespace"
    elif find_illegal_character(namespace) >= 0:
        fault = f"{namespace!r} has a character that XML cannot carry"
    return ("bad-namespace", fault) if fault else None


def _is_longer(value: str, bound: int) -> bool:
    # The number of characters first: many names may share one very long string.
    return len(value) > bound or len(value.encode()) > bound
