"""The network of the program's tests, which no attack harms."""

from tests.onyx.conftest import issuer, network, patience

__all__ = ["issuer", "network", "patience"]
