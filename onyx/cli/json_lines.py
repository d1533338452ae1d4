"""What ``--json`` prints: the objects, one a line, of every command.

``LINES`` is the contract, and docs/cli-json-schema.json is made of it (``python -m
onyx.cli.json_lines``); the tests decode with it what they have commands print.  Fields are added,
and nothing of what is there goes or changes its type.  No command imports this.
"""

from __future__ import annotations

import json
from typing import Any, get_type_hints

import msgspec

from formats.errors import Fault
from onyx.cli.bench import Measure
from onyx.cli.contexts import Context
from onyx.client_values import Outcome
from onyx.doctor import DoctorFinding
from onyx.metadata.requests import RuleListed
from onyx.network_view import TopBroker, TopLink, TopProfile, TopSource
from overlay import answers, verbs
from overlay.answers import LetterShown, Shown, as_shown
from overlay.settings import ProfileSettings
from registration.metadata.provider_reader import ProviderStatus, RepositoryInfo
from yfilter.explanation import Failure
from yfilter.schematron import RuleProfile

_ABSENT = {"": "", "int": 0, "float": 0.0, "bool": False, "list[str]": [], "list[int]": []}


class _Line(msgspec.Struct):
    pass


def _line(
    name: str, said: str = "", says: str = "", of: Any = _Line, but: str = "", **fields: Any
) -> Any:
    """An object with the fields that are ``said``, NAME:TYPE, with "?" where one may be missing,
    those ``of`` another line or record, ``but`` these, and ``fields``; where ``but`` is "...", and
    with what else the process says that is asked."""
    rows: list[Any] = []
    for word in said.split():
        field, _, kind = word.rstrip("?").partition(":")
        rows.append((field, kind or "str", *([_ABSENT.get(kind)] if word.endswith("?") else [])))
    if issubclass(of, Shown):
        of = as_shown(of)
    elif of.__module__ != __name__:
        hints = get_type_hints(of, include_extras=True)
        fields = {field: hints[field] for field in hints if field not in but.split()} | fields
        of = _Line
    rows += (
        (field, *(kind if isinstance(kind, tuple) else (kind,))) for field, kind in fields.items()
    )
    is_whole = but != "..."
    line: Any = msgspec.defstruct(
        *(name, rows), bases=(of,), kw_only=True, forbid_unknown_fields=is_whole, module=__name__
    )
    line.__doc__ = says or None
    return line


_AS_ANSWERED = (
    *("source register", "source list", "source show", "source update", "source ask"),
    *("profile policy", "broker drain", "taxonomy put", "plan use", "plan auto"),
)
_WARNED = _line("SchemaWarned", of=Fault, but="where")
_REFUSED = _line("TextRefused", "file", of=Fault, but="where hint")
_FAILED = _line("Failed", of=Failure)
_PUBLISHED = (
    _line("MessagePublished", "event file", of=Outcome),
    _line("PublicationDone", "event accepted:int refused:int known:int gone:int bytes:int"),
)
_PROFILE = _line("Profile", "file?", of=answers.ProfileInfo)
_OF_MANY = _line("ProfileOfMany", "line:int id:str|None warnings:list[str]?")
_ADDED = (
    _PROFILE,
    _line(
        *("ProfileRefused", "refusal", "``refusal``: why, as ``code`` of ``onyx profile check``."),
        of=_REFUSED,
    ),
    _OF_MANY,
)
_LETTER = _line("DeadLetter", "node", of=answers.Letter)
_SETTLED = _line("VersionSettled", "event version:int")
_ISSUED = _line("TokenIssued", "principal file token? expires:int?")
_CONTEXT = _line("ContextChanged", "name done used:bool")
_STORE = _line(
    "StoreState",
    "store whole:bool format:int commit:int|None rows:dict[str,int] "
    "damaged:list[dict[str,str]] missing:dict[str,int] faults:list[str] lost "
    "repaired:bool?",
)
_STORED = _line("BackedUpStore", "node commit:int sha256")
_COPY = "file network when release stores:list[_STORED]"
_PLAN = _line(
    "Plan",
    "plan partitions:int patterns:int load:float refused:int coverage:float "
    "largest_over_mean:float matched_share:float brokers_share:float samples:int "
    "topology partitions_by_broker:dict[str,int]",
)

_CHANGED = _line("MetadataChanged", "revision:int effects:dict[str,Any] by_rule:dict[str,Any]?")

LINES: dict[str, tuple[type[msgspec.Struct], ...]] = {
    "source remove": (_line("SourceRemoved", "event id"),),
    "source publish": _PUBLISHED,
    "source resume": _PUBLISHED,
    "source train": (
        _line(
            "DictionaryTrained",
            "messages:int left_out:int held_out_bytes_before:int held_out_bytes_after:int "
            "version:str|None",
        ),
    ),
    "subscribe": (
        _line(
            "MessageDelivered",
            "profile source number:int results:list[str]? files:list[str]? over_limit:bool? "
            "limit:Any? media_type?",
        ),
    ),
    "trace": (
        as_shown(answers.TraceStep),
        _line("TracePublished", "published:bool number:int said"),
    ),
    "transform show": (
        _line("Transformed", "profiles:dict[str,Any]", of=answers.LinkTransformation),
    ),
    "profile add": _ADDED,
    "profile update": _ADDED,
    "profile remove": (_line("ProfileRemoved", "id removed:bool missing:list[str]"), _OF_MANY),
    "profile show": (_PROFILE,),
    "profile list": (_PROFILE,),
    "profile export": (
        _line("ProfileExported", "profile user host", of=ProfileSettings, text=str),
    ),
    "profile check": (_line("TextChecked", "file warning:_WARNED|None"), _REFUSED),
    "profile explain": (
        _line(
            "ProfileExplained",
            "matching_path served_by linear_paths:list[str] parts:list[Any] remainder "
            "routing_query:list[list[str]] matched:bool|None results:int|None "
            "failure:_FAILED|None remainder_by warning:_WARNED|None",
        ),
        _REFUSED,
    ),
    "profile why-not": (_line("WhyNot", "profile matched:bool failure:_FAILED|None"),),
    "profile plan": (_line("ProfilesPlan", "plan"),),
    "profile import": (
        _line("AssertionRead", "assertion", of=RuleProfile, but="key id file"),
        _line("AssertionImported", "assertion id was warnings:list[str]?"),
    ),
    "up": (
        _line(
            "NetworkUp",
            "event name registration brokers:dict[str,str] pids:dict[str,int] topology gateway? "
            "metadata:list[str]?",
        ),
        _line(
            "ProcessEvent",
            "event node pid:int|None address? exit_code:int|None? failures:int? "
            "again_seconds:float? restored:int? rows:int? read:int? profiles:list[int]? "
            "interests:list[int]?",
            "``event``: ready, waiting, started, died, restoring.",
        ),
        _line(
            "SettingsTaken",
            "event taken:list[str] takes_a_start:list[str]",
            '``event``: settings; keys of the topology file, as "limits.profiles_max".',
        ),
        _line("Event", "event"),
    ),
    "gateway": (_line("GatewayUp", "event url"),),
    "status": (
        _line("Status", "node address statistics:dict[str,Any]|None"),
        _line("StatusEntry", "of name says:Any", "With --of."),
    ),
    "tap": (
        _line(
            "TapEvent",
            "kind broker source number:int time bytes:int|None? link? profile? code? reason?",
            "``kind``: accepted, refused, invalid, crossing or delivery.",
        ),
        _line(
            "TapGap",
            "kind broker count:int?",
            "``kind`` dropped: ``count`` events were left out; away: the broker does not answer.",
        ),
    ),
    "top": (TopBroker, TopLink, TopSource, TopProfile),
    "bench": (_line("BenchMeasure", of=Measure),),
    "doctor": (DoctorFinding,),
    "dead list": (_LETTER,),
    "dead show": (_line("DeadLetterShown", "node", of=LetterShown, data=str),),
    "dead replay": (_line("DeadReplayed", "node id kind said"),),
    "dead drop": (_line("DeadDropped", "node dropped"),),
    "broker lost": (as_shown(answers.BrokerLoss), _SETTLED),
    "topology check": (_line("TopologyChecked", "ok:bool file", but="..."),),
    "topology show": (_line("TopologyShown", "", "Of a file.", but="..."), as_shown(answers.Shape)),
    "topology apply": (_line("ShapeBegun", "event", of=answers.ShapeChange), _SETTLED),
    "query": (
        _line(
            "QueryLine",
            "rows:int? complete:bool? stopped:Any? actual:dict[str,Any]? bill:dict[str,float]? "
            "published:dict[str,int]?",
            "A row by its columns, or a row that a source may not publish; the last line has these "
            "fields.",
            but="...",
        ),
        _line("QueryStands", "standing text live:bool"),
        _line("QuerySaved", "saved file columns:list[str]"),
        _line("QueryPlanShown", "query_plan estimate:dict[str,Any] root:dict[str,Any]"),
    ),
    "function pack": (_line("FunctionPacked", "name digest bytes:int"),),
    "function sign": (_line("FunctionSigned", "name digest signer file"),),
    "function verify": (_line("FunctionVerified", "name digest signer kind signature", but="..."),),
    "function validate": (
        _line(
            "FunctionValidated",
            "name digest passed:bool problems:list[str] measured:dict[str,float]? report?",
        ),
    ),
    "provider check": (
        _line(
            "CatalogChecked",
            "relations:int functions:int cycle_providers:int rules:int faults:int",
        ),
        _line("CatalogFault", of=Fault),
    ),
    **dict.fromkeys(("provider schema", "provider measure"), (_line("Turtle", "turtle"),)),
    "provider serve": (_line("ProviderReady", "event at"),),
    "provider list": (_line("ProviderListed", "entry", but="..."),),
    "token issue": (_ISSUED,),
    "token oidc": (_ISSUED,),
    "audit list": (_line("Audited", of=answers.AuditEntry, at=str),),
    "audit verify": (
        _line(
            "AuditVerified",
            "whole:bool changes:int refusals:int silent:list[str] faults:list[str]",
            "``held_against``: the last entry of which each was told.",
            held_against=dict[str, int],
        ),
    ),
    "cert issue": (_line("CertificateIssued", "file principal days:int"),),
    "cert list": (_line("Certificate", "serial principal until days:int state"),),
    "cert renew": (_line("CertificateRenewed", "file principal until"),),
    "cert revoke": (_line("CertificatesRevoked", "revoked:list[str]"),),
    **dict.fromkeys(
        ("cert rotate", "cert authority"), (_line("CertificateRotated", "file principal"),)
    ),
    "context add": (_CONTEXT,),
    "context use": (_CONTEXT,),
    "context remove": (_CONTEXT,),
    "context list": (_line("ContextListed", "name used:bool", of=Context),),
    "completion": (_line("Completion", "shell script"),),
    "taxonomy show": (_line("TaxonomyText", of=answers.TaxonomyText, text=str),),
    "metadata serve": (_line("MetadataServed", "event source? revision:int? admin?"),),
    **dict.fromkeys(
        ("metadata schema", "metadata register", "metadata remove", "metadata sync"), (_CHANGED,)
    ),
    "metadata rule": (
        _line("RuleListed", of=RuleListed),
        _line(
            "MetadataRuleChanged",
            "revision:int effects:dict[str,Any] by_rule:dict[str,Any]? rule:str? sparql:str? "
            "suspended:str?",
        ),
    ),
    "metadata browse": (
        _line("ClassSeen", "name resources:int"),
        _line("ResourceListed", "resource"),
        _line(
            "ResourceSeen",
            "resource after classes:list[str] statements:list[dict[str,str]] "
            "referrers:list[dict[str,Any]] documents:list[str] repositories:list[str]",
        ),
    ),
    "metadata select": (_line("ResourcesSelected", "rules:list[str]", of=_CHANGED),),
    "metadata repository": (_line("RepositoryListed", "repository", of=RepositoryInfo), _CHANGED),
    "metadata watch": (_line("MatchTold", "event resource revision:int triples"),),
    "metadata cache": (
        _line("CacheRevision", "event revision:int resources:int"),
        _line("CacheShared", "event url"),
    ),
    "metadata query": (
        _line("QueryRow", "row:list[str]"),
        _line("QueryAnswered", "revision:int complete:bool rules:list[str]"),
        _line("QueryExplained", "sql"),
    ),
    "metadata prefix": (_line("PrefixMoved", "prefix to"),),
    "metadata status": (
        _line(
            "MetadataStatus",
            "members:dict[str,int] prefixes:dict[str,str] set_aside:dict[str,str]",
            of=ProviderStatus,
        ),
    ),
    "metadata explain": (
        _line("ResourceExplained", "held:list[dict[str,Any]] not_matched:dict[str,list[str]]"),
    ),
    "metadata verify": (_line("MetadataDifference", "difference"),),
    "make-results": (_line("ResultsMade", "broker messages:int"),),
    "store verify": (_STORE,),
    "store repair": (_STORE,),
    "store backup": (_line("StoreCopied", "store file commit:int"),),
    "store rebuild": (_line("CatalogRebuilt", "done:bool former said"),),
    "backup": (_line("NetworkBackup", f"{_COPY} bytes:int held_ms:float"),),
    "restore": (_line("NetworkRestored", f"{_COPY} data"),),
    "plan make": (_PLAN,),
    "plan show": (_PLAN,),
    "plan place": (_line("Placement", "file partition:int broker:str|None pattern:str|None"),),
    "plan apply": (
        as_shown(answers.PlanProgress),
        _line("PlanMoves", "profiles:int would_move:int moves:list[dict[str,Any]]"),
    ),
    "plan status": (
        _line(
            "PlanStatus",
            "plan applied:dict[str,Any] auto:as_shown(answers.AutoPlan) profiles:int? "
            "misplaced:int?",
            'Without a plan in force, ``plan`` is "" and the figures are not there.',
            but="...",
            coverage=(float, 1.0),
            new_plan_pays=(list[str], []),
        ),
    ),
    "plan diff": (_line("PlanDifference", "new partitions:list[int]", but="..."),),
    "backtest": (_line("Backtest", "messages:int", but="..."),),
    "archive read": (
        _line(
            "ArchivedMessage", "", "A line of the archive, as docs/planning.md has it.", but="..."
        ),
    ),
}
"""By the words of a command; a line is one of these."""

for _kind in verbs.TABLE:
    _words = _kind.verb.replace(".", " ")
    if _kind.is_command or _words in _AS_ANSWERED:
        LINES.setdefault(_words, (as_shown(answers.line_of(_kind.answer)),))


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
