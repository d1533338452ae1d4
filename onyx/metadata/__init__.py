"""MDV (seed 000): metadata that providers keep, and repositories cache by rules.

::

    with MetadataProvider(directory) as provider:          # an MDP, without a network
        provider.put_schema(schema, "text/turtle")
        provider.register({"http://e/doc.rdf": data}, "application/rdf+xml")
        rule = provider.add_rule("L1", "search CycleProvider c register c where c.memory > 64")
        messages = provider.changes("L1")

    with MetadataCache("l1.onyx", "L1") as cache:          # an LMR, which answers alone
        for message in messages:
            cache.apply(message)
        cache.query("search CycleProvider c register c where c.memory > 128").rows
"""

from onyx.metadata.cache import MetadataCache
from onyx.metadata.client import MetadataClient
from onyx.metadata.provider import MetadataProvider
from onyx.metadata.repository import MetadataRepository

__all__ = ["MetadataCache", "MetadataClient", "MetadataProvider", "MetadataRepository"]
