"""``onyx doctor``: what is wrong with a network, and what to do about it."""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from msgspec import to_builtins

from onyx import machine_checks
from onyx.cli.network_option import add_client_arguments, registration_address
from onyx.cli.values import counted, print_json, say
from onyx.cli.verb import Subparsers, add_verb
from onyx.data_directory import DataDirectory
from onyx.doctor import CHECKS, DoctorFinding, Facts, examine
from onyx.doctor_facts import gather
from onyx.errors import EXIT_OK, UsageError, UserError, file_errors
from onyx.identity.known_networks import identity_of
from onyx.registration_client import addresses_of
from overlay.topology import Topology, TopologyError, load_topology, to_toml

EXIT_FOUND = 1

DETAILS = """\
Looks at every process (does it answer, its release, its clock, what waits for neighbours
and users and for how long, links that come and go, messages that nobody wants, inputs
at which it has failed), at the ends of certificates (those of processes, of who is
connected, yours, and, where the authority is, all that it has issued), at the schemas of
sources, and at this machine, with --topology or where this account has started the network:
the topology file, the data directory, free disk, how long a write takes, open files, ports,
stores, certificates and keys, Java. Of a process that does not answer it says whether it is
gone, hangs, is stopped, is another one, or refuses. All but the schemas goes on without the
registration service. Everything that is found comes with a remedy. Nothing is changed.

--bundle FILE writes a zip file for a bug report: what was found, what processes count, the
topology without passwords, versions. No message and no text of a profile is in it; ids of
profiles and users may be.

Exit code 1: something was found."""

EXAMPLES = """\
  onyx doctor --topology topologies/figure4.toml
  onyx doctor --json
  onyx doctor --topology net.toml --bundle report.zip
"""

_PASSWORD = re.compile(r"(://[^:/@\s]*):[^@/\s]*@")


def add_parser(subparsers: Subparsers) -> None:
    takes = {"--bundle FILE": "write a zip file for a report"}
    parser = add_verb(subparsers, "doctor", "", run, takes, details=DETAILS, examples=EXAMPLES)
    add_client_arguments(parser)


async def run(arguments: argparse.Namespace) -> int:
    file = None if arguments.topology is None else load_topology(arguments.topology)
    where, unknown = "", ""
    try:
        where = registration_address(arguments)
    except UsageError as error:
        if file is None:
            raise
        unknown = str(error)
    topology = _running(where, file)
    facts = await gather(where, topology, unknown, file)
    found = examine(facts)
    if arguments.bundle is not None:
        write_bundle(arguments.bundle, facts, found, topology)
    if arguments.json:
        for finding in found:
            print_json(to_builtins(finding))
    else:
        print(said(facts, found))
        if arguments.bundle is not None:
            say(f"wrote {arguments.bundle}")
    return EXIT_FOUND if found else EXIT_OK


def _running(where: str, file: Topology | None) -> Topology | None:
    """The network as it runs, if it ever did; as the file says otherwise.  None: nobody knows what
    of it is on this machine."""
    if file is not None:
        directory = DataDirectory(file.data_directory)
    elif (identity := identity_of(*addresses_of(where)[0])) is not None:
        directory = DataDirectory(identity.parent)
    else:
        return None
    resolved = directory.topology_file
    with suppress(UserError, TopologyError):
        return load_topology(resolved) if resolved.exists() else file
    return file


def said(facts: Facts, found: Sequence[DoctorFinding]) -> str:
    """For people."""
    lines = []
    for finding in found:
        lines.append(f"{finding.severity.upper()}  {finding.about}: {finding.what}")
        lines.append(f"    {finding.remedy}")
    checks = CHECKS if facts.machine is None else (*CHECKS, *machine_checks.CHECKS)
    looked = counted(len(checks), "check")
    here = "" if facts.machine is not None else "; say --topology FILE to look at this machine too"
    of = f"{looked} of {len(facts.processes)} processes"
    lines.append(f"{of}: {counted(len(found), 'finding')}{here}")
    return "\n".join(lines)


def write_bundle(
    path: Path, facts: Facts, found: Sequence[DoctorFinding], topology: Topology | None
) -> None:
    """UnwritableOutput."""
    about = {
        "release": facts.release,
        "python": sys.version,
        "platform": platform.platform(),
        "unreachable": facts.unreachable,
        "schemas": facts.schemas,
    }
    contents = {"about.json": about, "findings.json": to_builtins(found)}
    for node, process in facts.processes.items():
        contents[f"processes/{node}.json"] = asdict(process)
    with file_errors(path), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in contents.items():
            file.writestr(name, json.dumps(content, indent=1, default=str))
        if topology is not None:
            file.writestr("topology.toml", _PASSWORD.sub(r"\1:***@", to_toml(topology)))
