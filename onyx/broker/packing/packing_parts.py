"""PackingParts: how messages are written on links."""

from __future__ import annotations

from onyx.broker.network.network_parts import NetworkParts
from onyx.broker.packing.codebook import Codebook
from onyx.broker.packing.compression_dictionaries import CompressionDictionaries
from onyx.broker.packing.give_backs import GiveBacks
from onyx.broker.packing.link_formats import LinkFormats
from overlay.link.core_context import CoreContext


class PackingParts:
    def __init__(self, context: CoreContext, network: NetworkParts) -> None:
        control = network.control
        self.trained = CompressionDictionaries(context, control)
        self.codebook = Codebook(network, self.trained)
        self.aside = Codebook(network, self.trained)  # its counts are of no message's way
        self.give_backs = GiveBacks(context, control, self.codebook)
        self.formats = LinkFormats(context, control, self.aside, self.give_backs)
        self.parts = (self.trained,)
