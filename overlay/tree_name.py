"""Names of broadcast trees, by the version of the network that made them.

The broadcast tree of a root broker changes only now and then, so a version
says for each root broker since which version its tree is what it is::

    version 0   tree of B1   B1      B1 -> B2 -> B3
    version 1                B1      a link between B2 and B4 comes: the tree of B1 is the same
    version 2                B1@2    B1 -> B2, B1 -> B3: another tree, with a name of its own

The name is the key of everything that belongs to a tree: its channels, routing tables, messages.
So two versions of a tree exist side by side without ever meeting, and a tree that does not change
is not touched.  Every broker finds the same trees under the same names, as ``broadcast_tree`` is a
function of the topology.
"""

from __future__ import annotations

_MARK = "@"  # no broker's id has it


def tree_name(root: str, version: int) -> str:
    """The name of the tree that ``root`` has since ``version``."""
    return f"{root}{_MARK}{version}" if version else root


def root_of(tree: str) -> str:
    """The root broker of a tree, by its name."""
    return tree.partition(_MARK)[0]


def version_of(tree: str) -> int:
    """Since when a tree is what it is."""
    version = tree.partition(_MARK)[2]
    return int(version) if version.isdecimal() else 0
