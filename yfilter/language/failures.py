"""Results that are failed assertions of SVRL, and what is told where a bound has cut them."""

from __future__ import annotations

from formats.escapes import escaped_text, escaped_value
from yfilter.errors import MatchLimitExceeded
from yfilter.language import query_ast as ast
from yfilter.language.namespaces import SVRL_NAMESPACE
from yfilter.language.profile_limits import EvaluationLimits


def first_told(
    profile: ast.Profile, exceeded: MatchLimitExceeded, limits: EvaluationLimits
) -> list[bytes]:
    """What is told where a bound has cut the results: the failed assertions of before, and as one
    more of them how many there are beyond, and on how many nodes nobody has looked; of anything
    else the bound, which is raised."""
    count, unseen = exceeded.of - len(exceeded.made), len(exceeded.unseen)
    said = [f"{count} more"] if count or not unseen else []
    said += [f"{unseen} not looked at"] if unseen else []
    why = f"{exceeded.reason} [{exceeded.code}]"
    rest = failure_more(profile, f"{' and '.join(said)}: {why}")
    if not rest or not exceeded.made or not limits.is_final(exceeded.code):
        raise exceeded
    return [*exceeded.made, rest]


def failure_more(profile: ast.Profile, said: str) -> bytes:
    """One failed assertion more, which says something of others; b"" where the results of a
    profile are no failed assertions."""
    failure = failure_of(profile.body)
    if failure is None:
        return b""
    tag = f"svrl:{failure.name.local}"
    given = "".join(
        f' {name}="{escaped_value(value) if isinstance(value, str) else ""}"'
        for name, (value, *_) in failure.attributes
    )
    text = f"<svrl:text>{escaped_text(said)}</svrl:text>"
    return f'<{tag} xmlns:svrl="{SVRL_NAMESPACE}"{given}>{text}</{tag}>'.encode()


def tells_more(profile: ast.Profile, result: bytes) -> bool:
    """Whether ``failure_more`` made a result: it has no location."""
    start = failure_more(profile, "").partition(b"<svrl:text>")[0]
    return bool(start) and result.startswith(start)


def tells_failures(profile: ast.Profile) -> bool:
    """Whether the results of a profile are failed assertions."""
    return failure_of(profile.body) is not None


def failure_of(body: object) -> ast.Constructor | None:
    """What SVRL says of an assertion, where the results of a profile are that."""
    result = body.result if isinstance(body, ast.Flwor) else None
    if isinstance(result, ast.Constructor) and result.name.namespace == SVRL_NAMESPACE:
        return result
    return None
