"""A replay: the records of a recording in order, the client's sent to a broker, the broker's awaited from it.

Rule 1. A frame of the client is sent when all facts have come that the recorded broker told before, on any connection.
        So the order of cause and effect is that of the recording.
Rule 2. A fact is awaited by its key and compared by its value. The first difference ends the replay.
Rule 3. A transfer waits for credit and window if the recorded client had them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NoReturn, TypeVar

from ambermq.protocol.amqp10.connection.sasl import SaslClientExchange
from ambermq.protocol.amqp10.framing.frames import SASL_FRAME, encode_frame
from ambermq.protocol.amqp10.performatives.classes import SaslInit, SaslResponse, Transfer
from ambermq.protocol.auth.sasl.client_credentials import ClientCredentials
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.proxy.broker_facts import DynamicAddresses, Fact
from ambermq.tools.proxy.client_frames import FrameMapping
from ambermq.tools.proxy.connection_model import ConnectionModel
from ambermq.tools.proxy.frame_stream import FramePart, FrameStream, Part
from ambermq.tools.proxy.recording import Kind, Record
from ambermq.tools.proxy.replay_socket import ReplaySocket, exchange

__all__ = ["Difference", "Replay"]

_ONE_STEP_MECHANISMS: Final = frozenset({"ANONYMOUS", "PLAIN", "EXTERNAL", "MSSBCBS"})
_ENDING: Final = ("close", "end", "detach", "sasl-outcome")
"""The facts that explain why another one does not come."""


_NO_CHALLENGE: Final = b"\0no challenge"

_Found = TypeVar("_Found")


class Difference(Exception):
    """The first difference: the broker did not tell what the recorded one told."""

    def __init__(self, connection: int, expected: str, found: str) -> None:
        super().__init__(f"connection {connection}: expected {expected}, found {found}")
        self.connection = connection
        self.expected = expected
        self.found = found


@dataclass(slots=True)
class _Replayed:
    """One connection of the recording and of the replay."""

    number: int
    live: ReplaySocket
    model: ConnectionModel
    """The model of the recording; the socket has that of the replay."""
    client: FrameStream = field(default_factory=FrameStream)
    broker: FrameStream = field(default_factory=FrameStream)
    has_own_login: bool = False
    """Whether the user of the URL replaced the recorded one, and its exchange."""
    login: SaslClientExchange | None = None
    """The login of that user while it waits for the broker."""

    ordinals: dict[tuple[object, ...], int] = field(default_factory=dict)
    """The number of a message of the replay by channel, link and number of the recorded one."""

    @property
    def mapping(self) -> FrameMapping:
        """The mapping of the client's frames."""
        return FrameMapping(self.model, self.live.model, self.ordinals)


class Replay:
    """A replay against one broker."""

    def __init__(self, target: BrokerUrl, *, timeout_s: float, speed: float) -> None:
        """`speed` 0 makes no pauses."""
        self._target = target
        self._timeout_s = timeout_s
        self._speed = speed
        self._connections: dict[int, _Replayed] = {}
        self._recorded_addresses = DynamicAddresses()
        self._addresses = DynamicAddresses()
        self._began: tuple[int, float] | None = None
        self.sent_count = 0
        """Frames and headers that were sent."""
        self.compared_count = 0
        """Facts that were compared."""
        self.connection_count = 0

    def close(self) -> None:
        """Close all sockets."""
        for each in self._connections.values():
            each.live.close()

    def play(self, record: Record) -> None:
        """Play one record; raise Difference for the first difference, ConnectionBroke if no broker answers."""
        if record.kind is Kind.OPENED:
            self._pace(record.time_us)
            self._connections[record.connection] = self._connect(record.connection)
            self.connection_count += 1
            return
        each = self._connections.get(record.connection)
        if each is None:
            return
        match record.kind:
            case Kind.CLIENT:
                self._pace(record.time_us)
                for part in each.client.feed(record.content):
                    self._send(each, part)
            case Kind.BROKER:
                for part in each.broker.feed(record.content):
                    self._compare(each, part)
            case Kind.CLIENT_END:
                self._end_client(each)
            case Kind.BROKER_END:
                self._await(each, "the end of the connection", lambda: each.live.is_ended or None)

    def _connect(self, number: int) -> _Replayed:
        live = ReplaySocket(self._target, ConnectionModel(number, self._addresses))
        return _Replayed(number, live, ConnectionModel(number, self._recorded_addresses))

    def finish(self) -> None:
        """Raise Difference if a broker told more than the recorded one, where the client ended the link in order."""
        for each in self._connections.values():
            for key, facts in each.live.facts.items():
                link = key[1:4]
                allowed = each.model.late[key]
                is_ordered = key[0] == "message" and _is_detached(each.model, link)
                if key[0] in ("attach", "begin") or (is_ordered and len(facts) > allowed):
                    raise Difference(each.number, "nothing more", facts[0].shown)

    def _pace(self, time_us: int) -> None:
        if self._began is None:
            self._began = time_us, time.monotonic()
        if not self._speed:
            return
        began_us, began_s = self._began
        due = began_s + (time_us - began_us) / 1_000_000 / self._speed
        while (left := due - time.monotonic()) > 0:
            self._exchange(left)

    def _exchange(self, seconds: float) -> None:
        exchange([each.live for each in self._connections.values()], seconds)

    # The client

    def _send(self, each: _Replayed, part: Part) -> None:
        frames: list[FramePart] = []
        data = part.data
        if isinstance(part, FramePart):
            if part.is_sasl:
                data = self._login(each, part)
            else:
                frames = self._mapped(each, part)
                data = b"".join(frame.data for frame in frames)
        if frames and isinstance(frames[0].performative, Transfer):
            self._await_room(each, frames)
        each.live.send(data, frames)
        each.model.sent(part)
        if each.login is not None:
            self._answer_challenges(each, each.login)
        self.sent_count += 1
        self._exchange(0.0)
        self._await(each, "a broker that reads", lambda: not each.live.is_full or None)

    def _mapped(self, each: _Replayed, part: FramePart) -> list[FramePart]:
        try:
            return each.mapping.mapped(part)
        except ValueError as error:
            raise Difference(each.number, "a broker that accepts the client's frame", str(error)) from error

    def _login(self, each: _Replayed, part: FramePart) -> bytes:
        """Return the bytes of a SASL frame: the recorded one, or that of the user in the URL."""
        if isinstance(part.performative, SaslResponse) and each.has_own_login:
            return b""
        if not isinstance(part.performative, SaslInit):
            return part.data
        if self._target.username is not None:
            return self._own_login(each, part.performative)
        mechanism = str(part.performative.mechanism)
        if mechanism not in _ONE_STEP_MECHANISMS:
            expected = "a mechanism whose answers can be repeated, or a user in the URL of --to"
            raise Difference(each.number, expected, f"the recorded mechanism {mechanism}")
        return part.data

    def _own_login(self, each: _Replayed, recorded: SaslInit) -> bytes:
        """Return the first frame of a login of the user in the URL, by a mechanism that this broker offers.

        A SCRAM exchange cannot be repeated: both ends take part in it with a random text.
        """
        each.has_own_login = True
        offered = self._await(each, "mechanisms of SASL", lambda: each.live.offered or None)
        login = ClientCredentials(self._target.username, self._target.password).choose(offered)
        if isinstance(login, str):
            raise Difference(each.number, "a mechanism for the user in the URL", login)
        each.login = login
        init = SaslInit(mechanism=login.mechanism, initial_response=login.first(), hostname=recorded.hostname)
        return encode_frame(0, init, frame_type=SASL_FRAME)

    def _answer_challenges(self, each: _Replayed, login: SaslClientExchange) -> None:
        """Answer the broker's challenges until it tells the outcome of the login."""
        each.login = None
        while True:
            challenge = self._await(each, "the outcome of the login", lambda: _challenge_of(each.live))
            if challenge is _NO_CHALLENGE:
                return
            response = login.respond(challenge)
            if response is None:
                raise Difference(each.number, "a broker that knows the password", "a wrong challenge")
            frame = SaslResponse(response=response)
            each.live.send(encode_frame(0, frame, frame_type=SASL_FRAME))
            self._exchange(0.0)

    def _await_room(self, each: _Replayed, frames: list[FramePart]) -> None:
        """Wait for credit and window, if the recorded client had them."""
        transfer, channel = frames[0].performative, frames[0].channel
        assert isinstance(transfer, Transfer)
        recorded, live = each.model.sessions.get(channel), each.live.model.sessions.get(channel)
        if recorded is None or live is None:
            return
        if recorded.window > 0:
            self._await(each, "a window for the client's transfer", lambda: live.window > 0 or None)
        link, own = recorded.by_client_handle.get(transfer.handle), live.by_client_handle.get(transfer.handle)
        if link is not None and own is not None and link.has_credit and not link.is_unfinished:
            expected = f"credit for delivery {own.delivery_count + 1} of link {link.name!r}"
            self._await(each, expected, lambda: own.has_credit or None)

    def _end_client(self, each: _Replayed) -> None:
        for part in each.client.finish():
            each.live.send(part.data)
        self._await(each, "a broker that reads", lambda: not each.live.has_output or None)
        each.live.finish()

    # The broker

    def _compare(self, each: _Replayed, part: Part) -> None:
        if isinstance(part, FramePart) and each.has_own_login and _is_exchange(part):
            return
        for fact in each.model.facts(part):
            found = self._await(each, fact.shown, partial(each.live.take, fact), fact)
            if found.value != fact.value:
                raise Difference(each.number, fact.shown, found.shown)
            if fact.kind == "message":
                each.ordinals[*fact.key[1:4], fact.ordinal] = found.ordinal
            self.compared_count += 1

    def _await(
        self, each: _Replayed, expected: str, find: Callable[[], _Found | None], fact: Fact | None = None
    ) -> _Found:
        """Return what `find` finds; raise Difference when it can come no more, or after the timeout."""
        deadline = time.monotonic() + self._timeout_s
        while (found := find()) is None:
            if each.live.is_ended or each.live.peek(("close",)):
                self._raise(each, fact, expected, "the end of the connection")
            if fact is not None and self._is_hopeless(each, fact):
                self._raise(each, fact, expected, "the end of its link or session")
            if time.monotonic() >= deadline:
                self._raise(each, fact, expected, f"nothing within {self._timeout_s:g} s")
            self._exchange(deadline - time.monotonic())
        return found

    def _is_hopeless(self, each: _Replayed, fact: Fact) -> bool:
        """Return whether the link or the session of an awaited fact has ended."""
        scope = fact.key[1:]
        facts = each.live.facts
        return (fact.kind != "end" and ("end", *scope[:1]) in facts) or (
            fact.kind not in ("detach", "attach") and len(scope) >= 3 and ("detach", *scope[:3]) in facts
        )

    def _raise(self, each: _Replayed, fact: Fact | None, expected: str, found: str) -> NoReturn:
        cause = each.live.peek(_ENDING)
        if cause is None and fact is not None and not fact.has_order:
            cause = next(iter(each.live.facts.get(fact.key, ())), None)
        raise Difference(each.number, expected, found if cause is None else cause.shown)


def _challenge_of(live: ReplaySocket) -> bytes | None:
    """Return the next challenge, _NO_CHALLENGE after the outcome, None while neither has come."""
    if live.challenges:
        return live.challenges.popleft()
    return _NO_CHALLENGE if live.peek(("sasl-outcome",)) else None


def _is_exchange(part: FramePart) -> bool:
    """Return whether a SASL frame is part of the exchange that a login of another mechanism replaces."""
    return part.is_sasl and part.performative is not None and part.performative.TYPE == "sasl-challenge"


def _is_detached(model: ConnectionModel, key: tuple[object, ...]) -> bool:
    """Return whether the recorded client detached the link, or closed the connection, in order."""
    if model.is_client_closed:
        return True
    session = next((each for channel, each in model.sessions.items() if channel == key[0]), None)
    if session is None:
        return False
    link = next((each for name, each in session.links.items() if name == key[1:3]), None)
    return session.is_client_ended or (link is not None and link.is_client_detached)
