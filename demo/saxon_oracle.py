"""What a profile delivers as Saxon says: for profiles beyond what oracle.py puts together itself.

Saxon has the whole of XQuery; what is settled here is only what becomes of a value (a document of
each item, or the message for a path) and when there is an enclosing element: when the one
``{ }`` in it yields anything.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.util import find_spec

from demo.saxon import Form, Saxon, SaxonError, prolog_and_body

_COMMENT = re.compile(r"\s*\(:.*?:\)\s*", re.DOTALL)
_ENCLOSING = re.compile(r"<([\w.-]+)[^<>{}]*>\s*\{(.*)\}\s*</\1>\s*", re.DOTALL)


def can_ask() -> bool:
    """Whether Saxon is installed."""
    return find_spec("saxonche") is not None


def results_by_saxon(profile: str, message: bytes) -> list[bytes]:
    """The documents that the profile delivers, in order; ValueError where Saxon has an error."""
    body = prolog_and_body(profile)[1]
    while comment := _COMMENT.match(body):
        body = body[comment.end() :]
    body = body.strip()
    decisive = ""
    if body.startswith("<"):
        enclosing = _ENCLOSING.fullmatch(body)
        if enclosing is None:
            raise ValueError("an enclosing element with more in it than one { }")
        decisive = enclosing[2]
    form = Form.PATH if body.startswith(("/", "$msg")) else Form.ITEMS
    (answer,) = _loaded(message).answers(profile, form, decisive)
    if isinstance(answer, SaxonError):
        raise ValueError(f"{answer.code}: {answer.reason}")
    return [document or message for document in answer]


@lru_cache(maxsize=1)  # messages come one after the other, each with all profiles
def _loaded(message: bytes) -> Saxon:
    saxon = _process()
    saxon.load([message])
    return saxon


@lru_cache(maxsize=1)
def _process() -> Saxon:
    """One for this process; it ends when its input does, with this process."""
    return Saxon()
