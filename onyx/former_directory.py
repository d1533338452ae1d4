"""A network whose data is where a former release would have looked for it is not begun anew.

Until 0.1 the data directory was ``.onyx/NAME``, and a relative one in a file was relative to the
working directory; now the one is in the account's state directory, the other relative to its file.
"""

from __future__ import annotations

import os
from pathlib import Path

from onyx.data_directory import TOPOLOGY_FILE
from onyx.errors import DataDirectoryError
from overlay.state_directory import state_directory
from overlay.topology import Topology


def check_former(topology: Topology, file: Path) -> None:
    """DataDirectoryError, with what to do, where there is data of before and none of now."""
    now = topology.data_directory.absolute()
    if (now / TOPOLOGY_FILE).exists():
        return
    if now == state_directory() / topology.name:
        former = Path(".onyx") / topology.name
    else:
        former = Path(os.path.relpath(now, file.absolute().parent))  # as the file has it
    if former.absolute() != now and (former / TOPOLOGY_FILE).exists():
        raise DataDirectoryError(
            f"{former} has the data of {topology.name}, as a former release kept it, and {now}, "
            f"where it is looked for now, has none; move it (mkdir -p {now.parent} && mv {former} "
            f"{now}), or say --data {former} each time"
        )
