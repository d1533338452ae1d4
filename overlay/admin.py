"""AdminOptions: where each process says how it is (``[admin]`` of a topology file).

Off by itself.  The address of each process follows from where it listens, so that a file of many
brokers names none twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from overlay.nodes import Address
from overlay.toml_table import TomlTable, toml_text


@dataclass(frozen=True, slots=True)
class AdminOptions:
    """The admin addresses of a network's processes.

    host           of all of them; whoever reaches one sees metrics, and no contents of messages
    port_offset    from the port where clients come to a process; 0: any free one, which its log and
                   ``onyx status`` name
    """

    host: str = "127.0.0.1"
    port_offset: int = 20_000

    def address(self, listen: Address) -> Address:
        """Of the process that listens there; beyond the last port it counts down."""
        if not self.port_offset:
            return Address(self.host, 0)
        port = listen.port + self.port_offset
        return Address(self.host, port if port < 65_536 else listen.port - self.port_offset)


def read_admin(top: TomlTable) -> AdminOptions | None:
    """``[admin]`` of a topology file, None where it has none; TopologyError for what is wrong."""
    if "admin" not in top:
        return None
    table = top.table("admin", [field.name for field in fields(AdminOptions)])
    default = AdminOptions()
    return AdminOptions(
        host=table.text("host", default.host),
        port_offset=table.integer("port_offset", 0, 40_000, default.port_offset),
    )


def admin_to_toml(options: AdminOptions | None) -> Iterator[str]:
    """The lines of ``[admin]``, every value written out."""
    if options is not None:
        yield from ("", "[admin]", f"host = {toml_text(options.host)}")
        yield f"port_offset = {options.port_offset}"
