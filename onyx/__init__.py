"""Onyx: content-based XML dissemination.

``DataSource`` publishes XML messages, ``User`` registers profiles and takes their results; both
are asynchronous, on Trio and on asyncio (``onyx.aio``); ``onyx.blocking`` has the same for programs
without ``async``.  ``launch`` (Trio) runs a whole network of broker processes on this machine.

Names are imported when they are used, so that a broker process does not load what only its
clients need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onyx.client_values import Delivery, Outcome
    from onyx.clients import User
    from onyx.data_source import DataSource
    from onyx.errors import (
        NetworkUnreachable,
        NotAuthenticated,
        ProfileNotAccepted,
        ProfilesNotAccepted,
        RequestFailed,
        UserError,
    )
    from onyx.identity.known_networks import use_credentials
    from onyx.launcher import RunningNetwork, launch
    from onyx.positions import PositionFile, Positions
    from onyx.profile_batches import NewProfile, ProfileBatch
    from onyx.registration_client import RegistrationClient
    from onyx.results import Results
    from overlay.answers import ProfileInfo, SourceInfo, TaxonomyInfo
    from overlay.delivery_policy import DeliveryPolicy

__all__ = [
    "DataSource",
    "Delivery",
    "DeliveryPolicy",
    "NetworkUnreachable",
    "NewProfile",
    "NotAuthenticated",
    "Outcome",
    "PositionFile",
    "Positions",
    "ProfileBatch",
    "ProfileInfo",
    "ProfileNotAccepted",
    "ProfilesNotAccepted",
    "RegistrationClient",
    "RequestFailed",
    "Results",
    "RunningNetwork",
    "SourceInfo",
    "TaxonomyInfo",
    "User",
    "UserError",
    "launch",
    "use_credentials",
]

_MODULES = {
    "onyx.client_values": ("Delivery", "Outcome"),
    "onyx.clients": ("User",),
    "onyx.data_source": ("DataSource",),
    "onyx.errors": (
        *("NetworkUnreachable", "ProfileNotAccepted", "ProfilesNotAccepted"),
        *("NotAuthenticated", "RequestFailed", "UserError"),
    ),
    "onyx.identity.known_networks": ("use_credentials",),
    "onyx.launcher": ("RunningNetwork", "launch"),
    "onyx.positions": ("PositionFile", "Positions"),
    "onyx.profile_batches": ("NewProfile", "ProfileBatch"),
    "onyx.registration_client": ("RegistrationClient",),
    "onyx.results": ("Results",),
    "overlay.answers": ("ProfileInfo", "SourceInfo", "TaxonomyInfo"),
    "overlay.delivery_policy": ("DeliveryPolicy",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)
