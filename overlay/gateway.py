"""GatewayTable: the gateway of a network (``[gateway]`` of a topology file)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from overlay.nodes import Address
from overlay.toml_table import TomlTable, toml_text

DEFAULT_LISTEN = Address("127.0.0.1", 7300)


@dataclass(frozen=True, slots=True)
class GatewayTable:
    """What ``onyx up`` starts beside the nodes.

    listen           where browsers and programs come; loopback only, unless there is a certificate
    tls_certificate  a file in PEM, with its tls_key
    names            by which it is known, beside that of its address
    """

    listen: Address = DEFAULT_LISTEN
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    names: tuple[str, ...] = ()


def read_gateway(
    top: TomlTable, read_address: Callable[[TomlTable, str], Address]
) -> GatewayTable | None:
    """``[gateway]`` of a topology file, None where it has none; TopologyError for what is wrong."""
    if "gateway" not in top:
        return None
    table = top.table("gateway", [each.name for each in fields(GatewayTable)])
    files = {key: Path(table.text(key)) for key in ("tls_certificate", "tls_key") if key in table}
    if len(files) == 1:
        raise table.refusal(next(iter(files)), "tls_certificate and tls_key go together")
    listen = read_address(table, "listen") if "listen" in table else DEFAULT_LISTEN
    return GatewayTable(listen, **files, names=tuple(table.texts("names", [])))


def gateway_to_toml(gateway: GatewayTable | None) -> Iterator[str]:
    """The lines of ``[gateway]``, as far as they say something."""
    if gateway is None:
        return
    yield from ("", "[gateway]", f"listen = {toml_text(str(gateway.listen))}")
    for key in ("tls_certificate", "tls_key"):
        if (file := getattr(gateway, key)) is not None:
            yield f"{key} = {toml_text(str(file))}"
    if gateway.names:
        yield f"names = [{', '.join(map(toml_text, gateway.names))}]"
