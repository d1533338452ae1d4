"""A market whose cycle providers A and B are servers of this process, with TLS and signatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from demo.queries.figure1 import free_ports
from onyx.identity.authority import Authority
from onyx.queries import Catalog
from onyx.queries.functions import FunctionStore
from onyx.queries.identity import Identity
from onyx.queries.provider_process import CycleService, Peers, Serving, plug_in
from onyx.queries.signatures import Gate
from overlay.link.principal import Principal
from registration.queries.providers import NAMESPACE, Market

ROWS = 2_000
_HEAD = f"@prefix q: <{NAMESPACE}> . @prefix : <urn:m#> .\n"


class Place:
    """Rows of A.R are n and its text, of B.S every third n; ``services`` by name."""

    def __init__(self, folder: Path, rules: str = "") -> None:
        self.folder = folder
        self.authority = Authority.make(folder / "identity", "market")
        self.services: dict[str, CycleService] = {}
        ports = free_ports()
        (folder / "R.csv").write_text("".join(f"{n},text {n}\n" for n in range(ROWS)))
        (folder / "S.csv").write_text("".join(f"{n}\n" for n in range(0, ROWS, 3)))
        said = [_HEAD]
        for name, port in zip("AB", ports, strict=True):
            said.append(f':{name} a q:CycleProvider, q:DataProvider ; q:name "{name}" ;')
            said.append(f' q:serverHost "127.0.0.1" ; q:serverPort {port} .')
        for of, name, schema in (("A", "R", "n BIGINT, t STRING"), ("B", "S", "n BIGINT")):
            said.append(f':{name} a q:Relation ; q:name "{name}" ; q:provider :{of} ;')
            said.append(f' q:readAt :{of} ; q:format "csv" ; q:schema "{schema}" ;')
            said.append(f' q:location "{folder / name}.csv" .')
        self.text = "\n".join(said)
        self.market = self.market_with(rules)

    def market_with(self, rules: str) -> Market:
        file = self.folder / "market.ttl"
        file.write_text(self.text + rules)
        return Catalog.read(file).market

    def credentials(self, kind: str, name: str) -> Path:
        file = self.folder / f"{kind}.{name}.pem"
        if not file.exists():
            file.write_bytes(self.authority.issue(Principal(kind, name)))
        return file

    @contextmanager
    def serving(self, spark: Any, markets: Mapping[str, Market] | None = None) -> Iterator[None]:
        """A and B at work; ``markets``: their own catalogs, where these say other things."""
        sites = {each.name: each for each in self.market.cycle_providers.values()}
        with ExitStack() as stack:
            for name in "AB":
                market = (markets or {}).get(name, self.market)
                file = self.credentials("provider", name)
                identity = Identity.of(file)
                check = identity.check(self.authority.revoked_file)
                peers = Peers(market, identity)
                plugged = plug_in(market, FunctionStore(self.folder / "functions"), check)
                service = CycleService(
                    sites[name], market, lambda: spark, Gate(check), peers, plugged
                )
                stack.enter_context(Serving(service, "127.0.0.1", sites[name].port or 0, file))
                self.services[name] = service
            yield
