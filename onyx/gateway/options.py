"""GatewayOptions: where a gateway listens, and what bounds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from onyx.errors import UsageError
from onyx.identity.known_networks import is_loopback
from overlay.gateway import ANY_ORIGIN, GatewayTable

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


class GatewayOptions(GatewayTable, frozen=True, kw_only=True):
    """``[gateway]`` of a topology file, or what the command line says, with what bounds it.

    body_bytes_max     of a request
    bodies_bytes_max   of all requests together, beyond which no body may have more than 64 KB
    connections_max    open at a time; a newcomer takes the place of one whose client owes something
    address_max        from one address of another machine; 0: any number
    requests_max       under way at a time; one more is answered 503
    streams_max        results and maps that are followed at a time; one more is answered 503
    token_streams_max  of these, of one token
    sessions_max       identities with connections to the network at a time
    unacknowledged_max deliveries that a stream of results gives before it ends, for whoever reads
                       it to say by Last-Event-ID how far they are
    catalog            files of what providers offer to queries, for its page of them
    """

    body_bytes_max: int = 16 * 1024 * 1024
    bodies_bytes_max: int = 256 * 1024 * 1024
    connections_max: int = 512
    address_max: int = 256
    requests_max: int = 128
    streams_max: int = 128
    token_streams_max: int = 64
    sessions_max: int = 64
    unacknowledged_max: int = 200
    catalog: tuple[Path, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether others than this machine reach it: then everybody shows a token."""
        return not is_loopback(self.listen.host)

    @property
    def hosts(self) -> frozenset[str]:
        """What a Host header may say, less the port; none: anything."""
        if self.is_open:
            return frozenset(self.names)
        return frozenset((*LOOPBACK_NAMES, *self.names, *_in_brackets((self.listen.host,))))

    def allows(self, origin: str) -> bool:
        """Whether pages of an origin may use the API."""
        return origin in self.origins or ANY_ORIGIN in self.origins

    def check(self) -> None:
        """UsageError for what would open the network to whoever comes by."""
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise UsageError("--tls-certificate and --tls-key go together")
        if wrong := self.wrong_origin:
            raise UsageError(f"--origin {wrong}")
        if self.is_open and self.tls_certificate is None:
            raise UsageError(
                f"{self.listen} is not of this machine alone: a gateway there shows a certificate "
                "(--tls-certificate FILE --tls-key FILE), and takes tokens (onyx token issue)"
            )


def _in_brackets(hosts: Iterable[str]) -> Iterator[str]:
    """IPv6 as a URL has it."""
    yield from (f"[{host}]" if ":" in host else host for host in hosts)
