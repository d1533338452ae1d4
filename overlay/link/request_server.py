"""RequestServer: requests in, responses out, for any core.

A verb is what a request needs (overlay/access.py) and a function ``(connection, request) -> result
or None``; None means that the answer comes later through ``answer``.  What a verb raises as
RequestRefused becomes the error of the response.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from overlay.access import AccessTable, Right
from overlay.delivery_policy import DeliveryPolicy, policy_of
from overlay.link.frames import Request, Response
from overlay.link.link_layer import LinkLayer
from overlay.link.principal import Principal
from yfilter.errors import ProfileRefused

NAME_BYTES_MAX = 256  # of UTF-8; what frame_fields.Name allows
BATCH_MAX = 10_000  # profiles in one request

Result: TypeAlias = dict[str, Any]
Answer: TypeAlias = Callable[[int, Request], Result | None]
Failing: TypeAlias = Callable[[int, Request, Exception], None]
"""(connection, request, what it has raised)."""


class Verb(NamedTuple):
    """``right``: what whoever asks must have.  ``about`` (request, who asks) says of what: (scope,
    owner) of each thing that the request names, and that there is; None: of nothing in particular.
    ``adds``: it may make the store larger by as much as whoever asks likes.
    """

    right: Right
    answer: Answer
    about: Callable[[Request, Principal], Iterable[tuple[str, str]]] | None = None
    adds: bool = False


NO_DETAILS: Mapping[str, object] = MappingProxyType({})


class RequestRefused(Exception):
    """A request that cannot be carried out; ``code`` is a stable word for machines, ``details``
    what else a machine may want to know."""

    def __init__(self, code: str, message: str, details: Mapping[str, object] = NO_DETAILS) -> None:
        super().__init__(message)
        self.code = code
        self.details = details


def profile_refused(refusal: ProfileRefused) -> RequestRefused:
    """With the place in the text, and what was expected there."""
    return RequestRefused("profile-refused", str(refusal), {"refusal": refusal.facts()})


class RequestServer:
    """Dispatches requests to verbs and sends the responses."""

    def __init__(
        self,
        links: LinkLayer,
        who: str,
        access: AccessTable,
        changes: Callable[[], int],
        failed: Failing,
        unsafe: Collection[str] = (),
    ) -> None:
        """``who`` is named in the refusal of an unknown verb ("a broker").

        ``failed`` is told of a verb that has raised what nobody expected before the count of
        ``changes`` to the store has changed; of the verbs ``unsafe``, which change other things
        first, the error goes on.
        """
        self._links = links
        self._who = who
        self.access = access
        self.verbs: dict[str, Verb] = {}  # those of all parts
        self._changes = changes
        self._failed = failed
        self._unsafe = unsafe
        self.disk_is_short = False

    def handle(self, connection: int, request: Request) -> None:
        before = self._changes()
        try:
            verb = self.verbs.get(request.verb)
            if verb is None:
                known = ", ".join(sorted(self.verbs))
                raise RequestRefused(
                    "unknown-verb", f"{self._who} has no verb {request.verb!r}; it has {known}"
                )
            principal = self._links.principal(connection)
            if principal is not None:
                self._check(principal, verb, request)
            if verb.adds and self.disk_is_short:
                raise RequestRefused(
                    "disk-full",
                    f"{request.verb}: the disk of {self._who} has less free than its reserve; ask "
                    "again later",
                )
            result = verb.answer(connection, request)
        except RequestRefused as refusal:
            error = {"code": refusal.code, "message": str(refusal), **refusal.details}
            self._links.reply(connection, Response(request=request.request, ok=False, result=error))
        except Exception as unexpected:
            is_changed = request.verb in self._unsafe or self._changes() != before
            if is_changed:
                raise
            self._failed(connection, request, unexpected)
        else:
            if result is not None:
                self.answer(connection, request.request, result)

    def principal(self, connection: int) -> Principal | None:
        """Who asks; None without TLS."""
        return self._links.principal(connection)

    def is_bounded(self, connection: int) -> bool:
        """Whether quotas are for whoever asks: not without TLS, and not for operators."""
        principal = self.principal(connection)
        return principal is not None and not self.access.now.may(principal, Right.OPERATE)

    def _check(self, principal: Principal, verb: Verb, request: Request) -> None:
        """RequestRefused "not-authorised" unless they may ask this."""
        about = (("", ""),) if verb.about is None else verb.about(request, principal)
        for scope, owner in about:
            if not self.access.now.may(principal, verb.right, scope, owner):
                what = f" {scope}" if scope else f" what is of {owner}" if owner else ""
                raise RequestRefused(
                    "not-authorised",
                    f"{request.verb}: {principal} may not {verb.right}{what}; onyx access list "
                    "shows who may",
                )

    def answer(self, connection: int, request: str, result: Result) -> None:
        self._links.reply(connection, Response(request=request, ok=True, result=result))


def profiles_named(request: Request) -> list[str]:
    """The ids in ``profile`` and ``profiles``, as far as they can be any."""
    many = request.arguments.get("profiles")
    named = [request.arguments.get("profile"), *(many if isinstance(many, list) else ())]
    return [profile for profile in named if isinstance(profile, str)]


def text_argument(request: Request, name: str, length_max: int) -> str:
    """A string argument of at most ``length_max`` characters."""
    value = request.arguments.get(name)
    if not isinstance(value, str):
        raise RequestRefused("bad-argument", f"{request.verb}: {name!r} must be a string")
    if len(value) > length_max:
        raise RequestRefused(
            "too-long",
            f"{request.verb}: {name!r} has {len(value)} characters, at most {length_max}",
        )
    return value


def texts_argument(request: Request, name: str, length_max: int) -> list[str]:
    """A list of at least one string, each of at most so many characters."""
    value = request.arguments.get(name)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise RequestRefused("bad-argument", f"{request.verb}: {name!r} must be a list of strings")
    if not 0 < len(value) <= BATCH_MAX:
        raise RequestRefused(
            "bad-argument",
            f"{request.verb}: {name!r} has {len(value)} values, expected 1 to {BATCH_MAX}",
        )
    for place, text in enumerate(value):
        if len(text) > length_max:
            raise RequestRefused(
                "too-long",
                f"{request.verb}: {name!r}[{place}] has {len(text)} characters, "
                f"at most {length_max}",
            )
    return value


def name_argument(request: Request, name: str, default: str | None = None) -> str:
    """An id or a name, short enough for any frame; no default means required."""
    value = request.arguments.get(name, default)
    if not isinstance(value, str):
        raise RequestRefused("bad-argument", f"{request.verb}: {name!r} must be a string")
    size = len(value.encode())
    if size > NAME_BYTES_MAX:
        raise RequestRefused(
            "too-long", f"{request.verb}: {name!r} has {size} bytes, at most {NAME_BYTES_MAX}"
        )
    return value


def number_argument(request: Request, name: str, default: float) -> float:
    """A number that is not negative."""
    value = request.arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise RequestRefused(
            "bad-argument", f"{request.verb}: {name!r} must be a number of at least 0"
        )
    return float(value)


def policy_argument(request: Request) -> DeliveryPolicy:
    """``policy``: the fields of a DeliveryPolicy by name, or absent."""
    try:
        return policy_of(request.arguments.get("policy", {}))
    except ValueError as error:
        raise RequestRefused("bad-argument", f"{request.verb}: {error}") from None


def location_argument(request: Request) -> tuple[float, float] | None:
    """``location``: [latitude, longitude] in degrees, or absent."""
    value = request.arguments.get("location")
    if value is None:
        return None
    bounds = (90, 180)
    if (
        isinstance(value, list)
        and len(value) == len(bounds)
        and all(
            isinstance(part, int | float) and not isinstance(part, bool) and abs(part) <= bound
            for part, bound in zip(value, bounds, strict=True)
        )
    ):
        return float(value[0]), float(value[1])
    raise RequestRefused(
        "bad-argument",
        f"{request.verb}: 'location' must be [latitude, longitude] in degrees, not "
        f"{repr(value)[:80]}",
    )
