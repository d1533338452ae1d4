"""Session: one connection, from its first byte to its last, without I/O.

::

    dialled    --- Hello --->                       OPEN: only Hello and error frames may come
               <-- Hello ----  accepted             ESTABLISHED: everything
               <-> frames, Ping, Pong <->           CLOSED: nothing is read or sent any more

The session cuts bytes into frames, answers pings, sends pings when it is quiet, turns what is
wrong into error frames, and closes.  What frames mean is the link layer's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto

from overlay.link.errors import ProtocolError
from overlay.link.events import Action, CloseConnection, Flow, ReadOn, SendData
from overlay.link.frame import FEATURES, Frame
from overlay.link.frame_codec import LENGTH_BYTES, Envelope, FrameDecoder, decode, encode
from overlay.link.frames import ErrorFrame, Hello, Ping, Pong
from overlay.link.limits import LinkLimits
from overlay.link.principal import PROCESS_ROLES, Principal
from overlay.link.slices import never

DETAIL_CHARACTERS_MAX = 500


class SessionState(Enum):
    OPEN = auto()
    ESTABLISHED = auto()
    CLOSED = auto()


class Session:
    """One connection; appends SendData, CloseConnection and ReadOn to the list it was given.

    ``is_over`` says whether the slice is, in which frames are taken: one always is.  ``dialled``
    is the peer that was dialled, ``ANYONE`` if its id is not known, "" if the connection was
    accepted; ``roles`` are those whose hello it may say, none: any.  ``peer`` and ``hello`` are set
    by the link layer; ``principal`` is who is at the other end, None without TLS.
    """

    __slots__ = (
        "_actions",
        "_heard_at",
        "_held",
        "_is_over",
        "_limits",
        "_opened_at",
        "_pinged_at",
        "_pings",
        "connection",
        "decoder",
        "dialled",
        "errors",
        "hello",
        "peer",
        "principal",
        "reason",
        "roles",
        "state",
    )

    def __init__(
        self,
        connection: int,
        dialled: str,
        limits: LinkLimits,
        now: float,
        actions: list[Action],
        is_over: Callable[[], bool] = never,
        principal: Principal | None = None,
        roles: frozenset[str] = frozenset(),
    ) -> None:
        self.connection = connection
        self.principal = principal
        self.roles = roles
        self.dialled = dialled
        self.peer = ""
        self.hello: Hello | None = None
        self.state = SessionState.OPEN
        self.reason = ""
        self.errors = 0
        self._limits = limits
        self._actions = actions
        self._is_over = is_over
        is_process = bool(dialled) or (
            roles <= PROCESS_ROLES if principal is None else principal.is_process
        )
        self.decoder = FrameDecoder(
            limits.hello_bytes_max if is_process else limits.unknown_bytes_max
        )
        self._held: list[tuple[Flow, bytes]] = []
        self._opened_at = self._heard_at = self._pinged_at = now
        self._pings = 0

    @property
    def closed(self) -> bool:
        return self.state is SessionState.CLOSED

    @property
    def features(self) -> frozenset[str]:
        """What both ends can do beyond the oldest version."""
        return frozenset() if self.hello is None else FEATURES.intersection(self.hello.features)

    @property
    def is_of_process(self) -> bool:
        """Whether another process of the network is at the other end."""
        return bool(self.dialled) or self.peer.partition("/")[0] in PROCESS_ROLES

    @property
    def frame_bytes_max(self) -> int:
        """Of a frame that leaves, without its length prefix: what both sides accept."""
        most = self._limits.frame_bytes_max
        return most if self.hello is None else min(most, self.hello.frame_bytes_max)

    def receive(self, data: bytes, now: float) -> Iterator[Envelope]:
        """The frames in ``data`` (and what was left before it), one by one.

        Lazily: each is decoded after the one before was dealt with.  Pings and pongs do not come
        out, nor does what is wrong; nothing comes out of a closed session.  What is left when the
        slice is over stays until more is received, of which ReadOn is said.
        """
        if self.closed:
            return
        self._heard_at = now
        self.decoder.feed(data)
        taken = 0
        while not self.closed:
            try:
                raw = self.decoder.next_frame()
                if raw is None:
                    return
                if taken and self._is_over():
                    self.decoder.put_back(raw)
                    self._actions.append(ReadOn(self.connection))
                    return
                taken += 1
                envelope = decode(raw)
                self._check_expected(envelope.frame)
            except ProtocolError as error:
                self.report(error)
                continue
            frame = envelope.frame
            if isinstance(frame, Ping):
                self.send(Pong(frame.nonce))
            elif not isinstance(frame, Pong):
                yield envelope

    def tick(self, now: float) -> None:
        """Time has passed: ping a quiet peer, close a dead one."""
        keepalive = self._limits.keepalive_seconds
        if self.state is SessionState.OPEN:
            if now - self._opened_at >= self._limits.hello_seconds:
                self.report(ProtocolError("hello-timeout", "no hello came", fatal=True))
        elif self.state is SessionState.ESTABLISHED and now - self._heard_at >= keepalive:
            if now - self._heard_at >= 3 * keepalive:
                detail = f"nothing was heard for {3 * keepalive:g} seconds"
                self.report(ProtocolError("silent", detail, fatal=True))
            elif now - self._pinged_at >= keepalive:
                self._pinged_at = now
                self._pings += 1
                self.send(Ping(self._pings))

    def send_hello(self, hello: Hello) -> None:
        """The first frame on the connection, before the session is established."""
        self._emit(hello.flow, encode(hello))

    def take_hello(self, hello: Hello) -> None:
        """The peer's hello was accepted as far as this layer is concerned."""
        self.hello = hello
        self.decoder.frame_bytes_max = self._limits.frame_bytes_max

    def establish(self) -> None:
        """Both hellos are exchanged; what was sent in between follows them."""
        self.state = SessionState.ESTABLISHED
        held, self._held = self._held, []
        for flow, data in held:
            self._emit(flow, data)

    def send(self, frame: Frame, flow: Flow | None = None) -> None:
        """Send an unsequenced frame, in another flow's queue if ``flow`` says so.

        ProtocolError if the frame breaks a rule or is longer than the peer accepts.
        """
        data, most = encode(frame), self.frame_bytes_max
        if len(data) - LENGTH_BYTES > most:
            kind = frame.type
            raise ProtocolError("too-long", f"{kind} frame of {len(data)} bytes; at most {most}")
        self.send_encoded(frame.flow if flow is None else flow, data)

    def send_encoded(self, flow: Flow, data: bytes, *, is_early: bool = False) -> None:
        """Send frames; held back until the hellos are exchanged, dropped once closed."""
        if self.state is SessionState.OPEN:
            self._held.append((flow, data))
        elif self.state is SessionState.ESTABLISHED:
            self._emit(flow, data, is_early)

    def report(self, error: ProtocolError) -> None:
        """Tell the peer what was wrong; close if it is fatal or one time too many."""
        if self.closed:
            return
        self.errors += 1
        self._send_error(error)
        if error.fatal:
            self.close(f"{error.code}: {error.detail}")
        elif self.errors > self._limits.errors_max:
            detail = f"{self.errors} wrong frames; at most {self._limits.errors_max}"
            self._send_error(ProtocolError("too-many-errors", detail, fatal=True))
            self.close(f"too-many-errors: {detail}")

    def close(self, reason: str) -> None:
        """Send what is queued, then nothing any more; idempotent."""
        if not self.closed:
            self.state = SessionState.CLOSED
            self.reason = reason
            self._held.clear()
            self._actions.append(CloseConnection(self.connection, reason))

    def lost(self) -> None:
        """The transport is gone."""
        self.state = SessionState.CLOSED

    def statistics(self) -> dict[str, object]:
        return {
            "peer": self.peer,
            "principal": "" if self.principal is None else str(self.principal),
            "state": self.state.name.lower(),
            "errors": self.errors,
            "buffered_bytes": self.decoder.buffered_bytes,
        }

    def _check_expected(self, frame: Frame) -> None:
        """Hello first and only once."""
        if isinstance(frame, ErrorFrame):
            return
        if self.hello is None and not isinstance(frame, Hello):
            raise ProtocolError("not-expected", f"{frame.type} before hello", fatal=True)
        if self.hello is not None and isinstance(frame, Hello):
            raise ProtocolError("not-expected", "a second hello", fatal=True)

    def _send_error(self, error: ProtocolError) -> None:
        detail = error.detail[:DETAIL_CHARACTERS_MAX].encode(errors="replace").decode()
        self._emit(Flow.CONTROL, encode(ErrorFrame(error.code, detail, error.fatal)))

    def _emit(self, flow: Flow, data: bytes, is_early: bool = False) -> None:
        self._actions.append(SendData(self.connection, flow, data, is_early))
