"""NetworkIdentity: what the processes of a network that are run here need to be who they are.

Either the network is secure: its authority is in the data directory, or somebody has put there what
that has issued for this process elsewhere.  Or it is not (``--insecure``): then all of it is on
this machine, and nobody else reaches it.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from onyx.errors import NotAuthenticated, UserError
from onyx.identity import known_networks
from overlay.link.principal import Principal
from overlay.nodes import Address, BrokerNode, RegistrationNode
from overlay.topology import Topology, TopologyError

if TYPE_CHECKING:
    from onyx.identity.authority import Authority

log = logging.getLogger("onyx.launcher")

RENEW_SECONDS = 3600.0  # between two looks


class NetworkIdentity:
    """``operator`` is the file by which the account that runs the network is its operator; None
    where it is insecure, or run elsewhere."""

    def __init__(
        self,
        directory: Path,
        topology: Topology,
        *,
        is_secure: bool,
        may_make: bool = True,
        file: str = "",
    ) -> None:
        """``directory`` is the folder ``identity``; ``may_make`` a new authority, if it has none.

        TopologyError naming ``file`` when a network shall be insecure, and is not on this machine.
        """
        self.is_secure = is_secure
        self.operator: Path | None = None
        self._directory = directory
        self._addresses = _addresses(topology)
        self._has_authority = False
        nodes: list[RegistrationNode | BrokerNode] = [*topology.registration, *topology.brokers]
        for node in nodes:
            self.check(node, file)
        if not is_secure:
            return
        # It takes long to load, and every verb loads this module.
        from onyx.identity.authority import Authority, account  # noqa: PLC0415

        if may_make or Authority.is_in(directory):
            self._has_authority = True
            self.operator = Authority.make(directory, topology.name).keep(account())

    def check(self, node: RegistrationNode | BrokerNode, file: str) -> None:
        """TopologyError where one shall listen insecurely, and not on this machine alone."""
        for address in (*node.clients_at, *node.links_at):
            if not self.is_secure and not known_networks.is_loopback(address.host):
                reason = f'"{address}" is not of this machine alone, as --insecure wants it'
                raise TopologyError(file, "", reason)

    def credentials_of(self, topology: Topology, node_id: str) -> Path | None:
        """The file of a process; None where the network is insecure.

        NotAuthenticated when nobody here can issue it, and nobody has put it there.
        """
        if not self.is_secure:
            return None
        principal = topology.principal(node_id)
        if (authority := self._authority()) is not None:
            return authority.keep(principal)
        path = self._directory / f"{principal.role}.{node_id}.pem"
        if not path.exists():
            raise NotAuthenticated(
                f"{node_id} has no credentials. On the machine where the authority of the network "
                f"is, say onyx cert issue {principal} --out FILE, and start it here with "
                f"--credentials FILE, or with that file as {path}"
            )
        return path

    def credentials_of_source(self, name: str) -> Path:
        """The file of a process beside the nodes that publishes as the source of that name."""
        if (authority := self._authority()) is None:
            return self.client
        return authority.keep(Principal("source", name))

    @property
    def client(self) -> Path:
        """What a client says to be the operator."""
        return self.operator or Path(known_networks.INSECURE)

    def note(self, topology: Topology) -> None:
        """Let the clients of this account find their credentials, also after a change."""
        self._addresses = _addresses(topology)
        if self.is_secure and self.operator is None:
            return
        try:
            known_networks.note(self._addresses, self.operator)
        except (OSError, RuntimeError, UserError) as error:
            variable = known_networks.VARIABLE
            log.warning("clients have to say %s=%s: %s", variable, self.client, error)

    def forget(self) -> None:
        """The network has stopped."""
        if not self.is_secure or self.operator is not None:
            known_networks.forget(self._addresses, self.operator)

    async def keep_valid(self) -> None:
        """Renew what ends soon, for ever; who uses it takes the new one while it runs."""
        while True:
            await trio.sleep(RENEW_SECONDS)
            try:
                self.renew()
            except (OSError, UserError) as error:
                log.error("certificates cannot be renewed: %s", error)

    def renew(self) -> None:
        """What ends soon, of all that is kept here."""
        if (authority := self._authority()) is not None:
            for principal in authority.kept():
                authority.keep(principal)

    def _authority(self) -> Authority | None:
        """As it is now: it may be replaced while all runs."""
        if not self._has_authority:
            return None
        from onyx.identity.authority import Authority  # noqa: PLC0415

        return Authority(self._directory)


def _addresses(topology: Topology) -> list[Address]:
    nodes: list[RegistrationNode | BrokerNode] = [*topology.registration, *topology.brokers]
    return [address for node in nodes for address in node.clients_at]
