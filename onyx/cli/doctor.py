"""``onyx doctor``: what is wrong with a network, and what to do about it."""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import trio

from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.values import counted, print_json
from onyx.cli.verb import Subparsers, add_verb, set_run
from onyx.data_directory import DataDirectory
from onyx.doctor import CHECKS, Facts, Finding, examine
from onyx.doctor_facts import gather
from onyx.errors import EXIT_OK, UnwritableOutput, UsageError
from overlay.topology import Topology, load_topology, to_toml

EXIT_FOUND = 1

DETAILS = f"""\
Looks at every process (does it answer, its release, its clock, what waits for neighbours
and users and for how long, links that come and go, messages that nobody wants, inputs
at which it has failed), at the schemas of sources, and, with --topology, at this machine:
the data directory, free disk, how long a write takes, open files, ports, stores.
Everything that is found comes with a remedy. Nothing is changed.

--bundle FILE writes a zip file for a bug report: what was found, what processes count, the
topology without passwords, versions. No message and no text of a profile is in it; ids of
profiles and users may be.

Exit code 1: something was found.
{NETWORK_HELP}"""

EXAMPLES = """\
  onyx doctor --topology topologies/figure4.toml
  onyx doctor --json
  onyx doctor --topology net.toml --bundle report.zip
"""

_PASSWORD = re.compile(r"(://[^:/@\s]*):[^@/\s]*@")


def add_parser(subparsers: Subparsers) -> None:
    parser = add_verb(
        subparsers,
        "doctor",
        "say what is wrong with a network, and what to do",
        details=DETAILS,
        examples=EXAMPLES,
    )
    parser.add_argument("--bundle", metavar="FILE", type=Path, help="write a zip file for a report")
    set_run(parser, run)
    add_client_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    topology = None if arguments.topology is None else _running(arguments.topology)
    where, why = "", ""
    try:
        where = registration_address(arguments)
    except UsageError as error:
        if topology is None:
            raise
        why = str(error)
    facts = trio.run(gather, where, topology, why)
    found = examine(facts)
    if arguments.bundle is not None:
        write_bundle(arguments.bundle, facts, found, topology)
    if arguments.json:
        for finding in found:
            print_json(asdict(finding))
    else:
        print(said(facts, found))
        if arguments.bundle is not None:
            print(f"onyx: wrote {arguments.bundle}", file=sys.stderr)
    return EXIT_FOUND if found else EXIT_OK


def _running(file: Path) -> Topology:
    """The network as it runs, if it ever did; as the file says otherwise."""
    topology = load_topology(file)
    resolved = DataDirectory(topology.data_directory).topology_file
    return load_topology(resolved) if resolved.exists() else topology


def said(facts: Facts, found: Sequence[Finding]) -> str:
    """For people."""
    lines = []
    for finding in found:
        lines.append(f"{finding.severity.value.upper()}  {finding.about}: {finding.what}")
        lines.append(f"    {finding.remedy}")
    looked = counted(len(CHECKS), "check")
    here = "" if facts.machine is not None else "; say --topology FILE to look at this machine too"
    of = f"{looked} of {len(facts.processes)} processes"
    lines.append(f"{of}: {counted(len(found), 'finding')}{here}")
    return "\n".join(lines)


def write_bundle(
    path: Path, facts: Facts, found: Sequence[Finding], topology: Topology | None
) -> None:
    """UnwritableOutput."""
    about = {
        "release": facts.release,
        "python": sys.version,
        "platform": platform.platform(),
        "unreachable": facts.unreachable,
        "schemas": facts.schemas,
        "machine": None if facts.machine is None else asdict(facts.machine),
    }
    contents = {"about.json": about, "findings.json": [asdict(finding) for finding in found]}
    for node, process in facts.processes.items():
        contents[f"processes/{node}.json"] = asdict(process)
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in contents.items():
                file.writestr(name, json.dumps(content, indent=1, default=str))
            if topology is not None:
                file.writestr("topology.toml", _PASSWORD.sub(r"\1:***@", to_toml(topology)))
    except OSError as error:
        raise UnwritableOutput(f"{path} cannot be written: {error.strerror}") from None
