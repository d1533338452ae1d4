"""PolicyChanges: how profiles are kept, as their users say it to their host broker.

The host broker tells the registration service, which keeps it beside the profile and tells whoever
hosts that next, ahead of the profile.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import astuple

from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.network.control_plane import ControlPlane
from overlay.delivery_policy import DeliveryPolicy
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.frame import POLICIES
from overlay.link.frames import DeliveryPolicies
from overlay.link.part import Part, Taker, takes
from overlay.link.request_server import RequestRefused
from registration.catalog import REGISTRATION_KEY


class PolicyChanges(Part):
    """``change`` as a user says."""

    def __init__(self, context: CoreContext, control: ControlPlane, mailboxes: Mailboxes) -> None:
        self._mailboxes = mailboxes
        self._links = context.links
        self._registration = control.registration

    def frames(self) -> Iterable[Taker]:
        yield takes(DeliveryPolicies, "registration", self._handle)

    def of(self, profile: str) -> DeliveryPolicy:
        return self._mailboxes.policies.of(profile)

    def change(self, profile: str, policy: DeliveryPolicy) -> None:
        """Of a profile that is hosted here; RequestRefused where the network cannot keep it."""
        if POLICIES not in self._links.features(self._registration):
            what = "is away" if not self._links.connected(self._registration) else "knows none"
            raise RequestRefused("no-policies", f"{self._registration}, which keeps them, {what}")
        self._mailboxes.use_policy(profile, policy)
        said = DeliveryPolicies([(profile, *astuple(policy))])
        self._links.send(self._registration, REGISTRATION_KEY, said)

    def _handle(self, frame: DeliveryPolicies, arrival: Arrival) -> None:
        for profile, policy in frame.by_profile():
            self._mailboxes.use_policy(profile, policy)
