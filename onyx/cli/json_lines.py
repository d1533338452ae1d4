"""What ``--json`` prints: the objects, one a line, of every command.

``LINES`` is the contract, and docs/cli-json-schema.json is made of it (``python -m
onyx.cli.json_lines``); the tests decode with it what they have commands print.  Fields are added,
and nothing of what is there goes or changes its type.  No command imports this.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from onyx.cli import json_live_types as live
from onyx.cli import json_store_types as stores
from onyx.cli import json_types as types
from onyx.doctor import DoctorFinding
from onyx.network_view import TopBroker, TopLink, TopProfile, TopSource
from overlay import answers, verbs
from overlay.answers import as_shown

_SOURCE = (as_shown(answers.SourceInfo),)

LINES: dict[str, tuple[type[msgspec.Struct], ...]] = {
    "source register": _SOURCE,
    "source list": _SOURCE,
    "source show": _SOURCE,
    "source update": _SOURCE,
    "source remove": (types.SourceRemoved,),
    "source publish": (types.MessagePublished, types.PublicationDone),
    "source resume": (types.MessagePublished, types.PublicationDone),
    "source train": (types.DictionaryTrained,),
    "subscribe": (types.MessageDelivered,),
    "trace": (types.TraceStep, types.TracePublished),
    "transform show": (types.LinkTransformation,),
    "profile add": (types.Profile, types.ProfileRefused, types.ProfileOfMany),
    "profile update": (types.Profile, types.ProfileRefused, types.ProfileOfMany),
    "profile remove": (types.ProfileRemoved, types.ProfileOfMany),
    "profile show": (types.Profile,),
    "profile list": (types.Profile,),
    "profile export": (types.ProfileExported,),
    "profile check": (types.TextChecked, types.TextRefused),
    "profile explain": (types.ProfileExplained, types.TextRefused),
    "profile why-not": (types.WhyNot,),
    "profile policy": (as_shown(answers.PolicyInfo),),
    "profile plan": (types.ProfilesPlan,),
    "profile import": (types.AssertionRead, types.AssertionImported),
    "up": (types.NetworkUp, types.ProcessEvent, types.SettingsTaken, types.Event),
    "gateway": (types.GatewayUp,),
    "status": (types.Status, types.StatusEntry),
    "tap": (live.TapEvent, live.TapGap),
    "top": (TopBroker, TopLink, TopSource, TopProfile),
    "bench": (live.BenchMeasure,),
    "doctor": (DoctorFinding,),
    "dead list": (types.DeadLetter,),
    "dead show": (types.DeadLetterShown,),
    "dead replay": (types.DeadReplayed,),
    "dead drop": (types.DeadDropped,),
    "broker drain": (as_shown(answers.BrokerLeaving),),
    "broker lost": (as_shown(answers.BrokerLoss), types.VersionSettled),
    "topology check": (types.TopologyChecked,),
    "topology show": (types.TopologyShown, as_shown(answers.Shape)),
    "topology apply": (types.ShapeBegun, types.VersionSettled),
    "token issue": (types.TokenIssued,),
    "token oidc": (types.TokenIssued,),
    "audit list": (types.Audited,),
    "cert issue": (types.CertificateIssued,),
    "cert list": (types.Certificate,),
    "cert revoke": (types.CertificatesRevoked,),
    "cert rotate": (types.CertificateRotated,),
    "context add": (types.ContextChanged,),
    "context use": (types.ContextChanged,),
    "context remove": (types.ContextChanged,),
    "context list": (types.ContextListed,),
    "completion": (types.Completion,),
    "taxonomy put": (as_shown(answers.TaxonomyPut),),
    "taxonomy show": (types.TaxonomyText,),
    "make-results": (types.ResultsMade,),
    "store verify": (stores.StoreState,),
    "store repair": (stores.StoreState,),
    "store backup": (stores.StoreCopied,),
    "store rebuild": (stores.CatalogRebuilt,),
    "backup": (stores.NetworkBackup,),
    "restore": (stores.NetworkRestored,),
    "plan make": (types.Plan,),
    "plan show": (types.Plan,),
    "plan place": (types.Placement,),
    "plan use": (as_shown(answers.PlanUsed),),
    "plan apply": (as_shown(answers.PlanProgress), types.PlanMoves),
    "plan auto": (as_shown(answers.AutoPlan),),
    "plan status": (types.PlanStatus,),
    "plan diff": (types.PlanDifference,),
    "backtest": (types.Backtest,),
    "archive read": (types.ArchivedMessage,),
}
"""By the words of a command; a line is one of these."""

for _kind in (kind for kind in verbs.TABLE if kind.is_command):
    LINES.setdefault(_kind.verb.replace(".", " "), (as_shown(answers.line_of(_kind.answer)),))


def decode_line(command: str, line: str) -> msgspec.Struct:
    """A line that a command has printed; ValidationError where it is none of its own."""
    kinds = LINES[command]
    for kind in kinds[:-1]:
        try:
            return msgspec.json.decode(line, type=kind)
        except msgspec.ValidationError:
            continue
    return msgspec.json.decode(line, type=kinds[-1])


def schema() -> dict[str, Any]:
    """JSON Schema of all: ``$defs`` by name, and by command which of them a line is."""
    kinds = list(dict.fromkeys(kind for kinds in LINES.values() for kind in kinds))
    _, definitions = msgspec.json.schema_components(kinds)
    commands = {
        command: {"anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in kinds]}
        for command, kinds in LINES.items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What the commands of onyx print with --json, one object a line",
        "commands": commands,
        "$defs": msgspec.json.decode(msgspec.json.encode(definitions)),  # no tuples
    }


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1, ensure_ascii=False))
