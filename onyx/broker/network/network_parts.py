"""NetworkParts: what all other parts of a broker look things up in."""

from __future__ import annotations

from collections.abc import Callable

from onyx.broker.network.access_rules import AccessRules
from onyx.broker.network.audit_reports import AuditReports
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.network.taxonomies import Taxonomies
from overlay.link.core_context import CoreContext


class NetworkParts:
    def __init__(
        self,
        context: CoreContext,
        kept_between: Callable[[], tuple[int, int]],
        revoke: Callable[[frozenset[int]], None],
    ) -> None:
        self.control = ControlPlane(context, kept_between)
        self.access = AccessRules(context, self.control, revoke)
        self.taxonomies = Taxonomies(context, self.control)
        audit = AuditReports(context, self.control)
        self.parts = self.control, self.access, self.taxonomies, audit
