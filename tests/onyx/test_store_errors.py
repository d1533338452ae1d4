"""What is wrong with a store, as an error for a person, from one task or from several at once."""

from __future__ import annotations

import pytest

from onyx.errors import LeaseLost, StoreUnusable, UserError
from onyx.store_errors import store_errors
from overlay.link.errors import Fenced, StoreError


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Fenced("over"), LeaseLost),
        (ExceptionGroup("", [Fenced("over"), ExceptionGroup("", [Fenced("2")])]), LeaseLost),
        (StoreError("over"), StoreUnusable),
        (ExceptionGroup("", [StoreError("over"), Fenced("2")]), StoreUnusable),
    ],
)
def test_what_is_wrong_with_a_store_is_told_once(
    error: Exception, expected: type[UserError]
) -> None:
    with pytest.raises(expected, match=r"^over$"), store_errors():
        raise error


def test_what_else_is_wrong_comes_out_as_it_is() -> None:
    group = ExceptionGroup("", [Fenced("1"), ValueError("2")])
    with pytest.raises(ExceptionGroup) as raised, store_errors():
        raise group
    assert raised.value is group
