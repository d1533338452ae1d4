"""The network of the program's tests, which no attack harms."""

from tests.onyx.conftest import network, patience

__all__ = ["network", "patience"]
