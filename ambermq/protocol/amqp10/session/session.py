"""A session: delivery-ids, windows, and the links that share them (transport, 2.5).

Rule 1: after our end everything is ignored until the peer's; after the peer's end nothing is sent any more.
Rule 2: settlements wait until the output is taken, so those of one tick leave as ranges; but before any goodbye.
Rule 3: a fault is raised where it is found and ends its scope in `IncomingTransfers.receive` or in the connection.
Rule 4: every call on a dead session does nothing; it holds no delivery.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from ambermq.protocol.amqp10.errors import FramingError, LocalError, SessionFault
from ambermq.protocol.amqp10.events import CreditChanged, SessionEnded
from ambermq.protocol.amqp10.framing.frame_templates import write_flow
from ambermq.protocol.amqp10.link.link import Link
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Begin,
    Coordinator,
    DeliveryState,
    Detach,
    End,
    Error,
    Flow,
    Source,
    Target,
)
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.session.dispositions import Dispositions
from ambermq.protocol.amqp10.session.flow_windows import OUTGOING_WINDOW, FlowWindows
from ambermq.protocol.amqp10.session.incoming_transfers import IncomingTransfers
from ambermq.protocol.amqp10.session.link_registry import LinkRegistry
from ambermq.protocol.amqp10.session.outgoing_dispositions import OutgoingDispositions
from ambermq.protocol.amqp10.session.session_connection import SessionConnection
from ambermq.protocol.amqp10.session.unsettled import DeliveryRing
from ambermq.protocol.amqp10.spec import Role, SessionCondition
from ambermq.protocol.amqp10.state_tables import SESSION_TABLE, LinkState, SessionInput, SessionState
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["Session"]

# Names of their own, since a look into an enumeration costs as much as a call.
_MAPPED: Final = SessionState.MAPPED


class Session:
    """One session of a connection."""

    __slots__ = (
        "_is_reopened",
        "_links",
        "_waiting",
        "channel",
        "connection",
        "dispositions",
        "has_second",
        "incoming",
        "is_awaited",
        "next_sent_id",
        "received",
        "remote_channel",
        "sent",
        "settlements",
        "state",
        "unsettled_max",
        "windows",
    )

    def __init__(self, connection: SessionConnection, channel: int, first_id: int) -> None:
        self.connection = connection
        self.channel = channel
        """Our channel; the peer's is its own."""
        self.remote_channel = -1
        self.state = SessionState.UNMAPPED
        self._links = LinkRegistry(self)
        limits = connection.limits
        self.windows = FlowWindows(min(limits.window_frames, limits.unsettled_max), first_id)
        self.incoming = IncomingTransfers(self, self._links)
        """Transfers that come."""
        self.dispositions = Dispositions(self, self._links)
        """Dispositions that come."""
        self.settlements = OutgoingDispositions(self)
        """Those that leave."""
        self.unsettled_max = limits.unsettled_max
        """Deliveries that may be unsettled, in either direction."""
        self.next_sent_id = first_id
        self.sent = DeliveryRing()
        """What we sent and is not settled."""
        self.is_awaited = False
        """Somebody could send nothing more for all that was unsettled; whoever frees some clears it."""
        self.received = DeliveryRing()
        """What we received and is not settled."""
        self.has_second = False
        """Some of what was received is in receiver-settle-mode second."""
        self._waiting: deque[tuple[Link, Buffer, Buffer]] | None = None
        """Frames that found the peer's window closed; while there are any it has no room."""
        self._is_reopened = False

    # What its owner calls

    @property
    def is_live(self) -> bool:
        """Mapped at both ends, as far as we know."""
        return self.state is _MAPPED

    @property
    def is_full(self) -> bool:
        """Whether nothing more may leave until the peer settles something."""
        return self.sent.count >= self.unsettled_max

    def await_room(self) -> None:
        """Note, where it is full, that somebody waits for room."""
        if self.is_full:
            self.is_awaited = True

    def links(self) -> list[Link]:
        """List the links that are not detached at both ends; of an ended session those that it had."""
        return self._links.all()

    def attach_sender(
        self, name: str, source: Source | None, target: Target | Coordinator | None, *, initial_delivery_count: int = 0,
        sender_settle_mode: int = 2, receiver_settle_mode: int = 0, properties: dict[Any, Any] | None = None,
    ) -> Sender:  # fmt: skip
        """Attach a link on which we send; LinkAttached tells the peer's answer. LocalError when no handle is left."""
        link = Sender(self, name, self._links.free_handle(), initial_delivery_count)
        self._attach(link, source, target, sender_settle_mode, receiver_settle_mode, properties)
        return link

    def attach_receiver(
        self, name: str, source: Source | None, target: Target | None, *,
        sender_settle_mode: int = 2, receiver_settle_mode: int = 0, properties: dict[Any, Any] | None = None,
    ) -> Receiver:  # fmt: skip
        """Attach a link on which we receive; see attach_sender. Credit may be granted at once."""
        link = Receiver(self, name, self._links.free_handle())
        self._attach(link, source, target, sender_settle_mode, receiver_settle_mode, properties)
        return link

    def settle(self, first_id: int, count: int, state: DeliveryState | None) -> None:
        """Say what became of received deliveries with consecutive ids; what is not held is left out.

        They are settled with it, but for receiver-settle-mode second: those stay until the peer settles. The state must
        not change any more.
        """
        if count <= 0:
            return
        last_id = (first_id + count - 1) & MASK
        if not self.has_second:
            for run in self.received.take(first_id, last_id):
                self.settlements.say(run, state, settled=True, role=Role.RECEIVER)
            return
        for run in self.received.find(first_id, last_id):
            if not run.is_second:
                self.received.take(run.first_id, (run.first_id + run.count - 1) & MASK)
            self.settlements.say(run, state, settled=not run.is_second, role=Role.RECEIVER)

    def settle_sent(self, first_id: int, count: int, state: DeliveryState | None) -> None:
        """Settle deliveries that we sent, with the state that holds in the end; what is not held is left out."""
        if count <= 0:
            return
        for run in self.sent.take(first_id, (first_id + count - 1) & MASK):
            self.settlements.say(run, state, settled=True, role=Role.SENDER)

    def pause(self) -> None:
        """Close the incoming window; what is in flight still comes."""
        if not self.windows.is_paused:
            self.windows.is_paused = True
            self.send_flow()

    def resume(self) -> None:
        """Open the incoming window again."""
        if self.windows.is_paused:
            self.windows.is_paused = False
            self.send_flow()

    def end(self, error: Error | None = None) -> None:
        """End the session from our side; the peer's answer is awaited silently."""
        if self.state not in (SessionState.MAPPED, SessionState.BEGIN_SENT):
            return
        self.flush()
        self.send(End(error=error))
        self.state = SESSION_TABLE[self.state, SessionInput.SEND_END]
        self._forget()

    # What its links call

    def send(self, performative: Composite) -> None:
        """Write a frame on our channel."""
        if self.state in (SessionState.MAPPED, SessionState.BEGIN_SENT):
            self.connection.send(self.channel, performative)

    def send_flow(self, link: Link | None = None, *, drain: bool = False) -> None:
        """Write a flow, with the state of `link` when given; both windows are told in any case."""
        if self.state not in (SessionState.MAPPED, SessionState.BEGIN_SENT):
            return
        windows = self.windows
        flow = Flow(
            next_incoming_id=windows.next_incoming_id,
            incoming_window=windows.incoming(self._room),
            next_outgoing_id=windows.next_outgoing_id,
            outgoing_window=OUTGOING_WINDOW,
        )
        if link is not None:
            flow.handle = link.handle
            flow.delivery_count, flow.link_credit, flow.available = link.flow_fields()
            flow.drain = drain
        self.connection.output.add(write_flow(self.channel, flow))

    def send_or_wait(self, link: Link, head: bytes, payload: Buffer) -> None:
        """Write one transfer frame, now or when the window has room for it."""
        if self._waiting or self.windows.remote <= 0:
            if self._waiting is None:
                self._waiting = deque()
            self._waiting.append((link, head, payload))
            return
        self._send_transfer(head, payload)

    def release(self, link: Link) -> None:
        """Forget what a link held, once it can hold nothing more."""
        # A link that the peer has not answered yet must still be found by its name when the answer comes.
        if link.remote is not None:
            self._links.forget_name(link)
        self.sent.drop(link)
        self.received.drop(link)
        if self.windows.left <= self.windows.low:
            # What it held was counted in the window.
            self.mark_dirty()
        link.drop_partial()
        link.shape = None
        if self._waiting:
            self._waiting = deque(entry for entry in self._waiting if entry[0] is not link)

    def flush(self) -> None:
        """Write what waits for the end of the tick: settlements, and a window that is due."""
        self.settlements.flush()
        windows = self.windows
        if windows.left <= windows.low and self.state is _MAPPED and windows.is_due(self._room):
            self.send_flow()

    # What its connection calls

    def begin(self, remote_channel: int | None = None) -> None:
        """Write our begin, in answer to the peer's when remote_channel is given."""
        self.state = SESSION_TABLE[self.state, SessionInput.SEND_BEGIN]
        limits = self.connection.limits
        begin = Begin(
            remote_channel=remote_channel,
            next_outgoing_id=self.windows.next_outgoing_id,
            incoming_window=self.windows.incoming(self._room),
            outgoing_window=OUTGOING_WINDOW,
            handle_max=limits.handle_max,
        )
        self.connection.send(self.channel, begin)

    def receive_begin(self, begin: Begin, channel: int) -> None:
        """Take the peer's begin, the first or the answer to ours."""
        self.state = SESSION_TABLE[self.state, SessionInput.RECEIVE_BEGIN]
        self.remote_channel = channel
        self.windows.next_incoming_id = begin.next_outgoing_id
        self.windows.remote = begin.incoming_window
        self._links.remote_handle_max = begin.handle_max

    def receive_end(self) -> bool:
        """Take the peer's end and answer it; returns whether it was the first to say so."""
        self.state = SESSION_TABLE[self.state, SessionInput.RECEIVE_END]
        if self.state is SessionState.UNMAPPED:
            return False
        self.connection.send(self.channel, End())
        self.state = SESSION_TABLE[self.state, SessionInput.SEND_END]
        self._forget()
        return True

    def drop(self) -> None:
        """End with the connection: nothing is said any more."""
        self.state = SessionState.UNMAPPED
        self._forget()

    def fail(self, condition: str, description: str) -> None:
        """End for the peer's fault, and tell."""
        error = Error(condition=condition, description=description)
        self.end(error)
        self.connection.events.append(SessionEnded(self, error))

    def receive(self, performative: Composite) -> None:
        """Take an attach or a detach. FramingError or SessionFault when it has no place here."""
        if type(performative) is Attach:
            self._links.receive_attach(performative)
        elif type(performative) is Detach:
            self._links.receive_detach(performative)
        else:
            raise FramingError(f"{performative.NAME} has no place in a session")

    def receive_flow(self, fields: list[int | bool | None]) -> None:
        """Take a flow, as its ten fields in the order of the wire."""
        windows = self.windows
        before = windows.remote
        windows.receive_flow(fields[0], fields[1])  # type: ignore[arg-type]  # both readers checked the mandatory ones
        handle, echo = fields[4], bool(fields[9])
        if handle is not None:
            link = self._links.by_handle.get(handle)
            if link is None:
                raise SessionFault(SessionCondition.UNATTACHED_HANDLE, f"flow for handle {handle}")
            if link.state is LinkState.ATTACHED or link.state is LinkState.ATTACH_RECEIVED:
                link.receive_flow(fields[5], fields[6], drain=bool(fields[8]), echo=echo)
        elif echo:
            self.send_flow()
        if windows.remote > before and (handle is None or before <= 0 or self._waiting):
            self._window_opened()

    def tell_reopened(self) -> None:
        """Tell the senders with credit that the window opened: once a read, however often it did."""
        self._is_reopened = False
        links = [link for link in self._links.all() if link.is_sender and link.credit]
        self.connection.events.extend(CreditChanged(link) for link in links if link.is_live)

    # The rest

    def _attach(
        self, link: Link, source: Source | None, target: Target | Coordinator | None,
        sender_settle_mode: int, receiver_settle_mode: int, properties: dict[Any, Any] | None,
    ) -> None:  # fmt: skip
        if self.state not in (SessionState.MAPPED, SessionState.BEGIN_SENT):
            raise LocalError(f"attach in session state {self.state.name}")
        self._links.add(link)
        link.sender_settle_mode, link.receiver_settle_mode = sender_settle_mode, receiver_settle_mode
        link.send_attach(source, target, properties=properties)

    @property
    def _room(self) -> int:
        return self.unsettled_max - self.received.count

    def mark_dirty(self) -> None:
        """Be asked to flush when the output is taken."""
        self.connection.dirty[self] = None

    def _send_transfer(self, head: Buffer, payload: Buffer) -> None:
        self.windows.sent(1)
        self.connection.output.add(head)
        self.connection.output.add(payload)

    def _window_opened(self) -> None:
        """Send what waits; when that is all, the senders will be told that there is room again."""
        while self._waiting and self.windows.remote > 0:
            _, head, payload = self._waiting.popleft()
            self._send_transfer(head, payload)
        if not self._waiting and not self._is_reopened:
            self._is_reopened = True
            self.connection.reopened.append(self)

    def _forget(self) -> None:
        """Drop what the session held; its links stay for who asks."""
        self.connection.recogniser = None
        self.settlements.drop()
        self._waiting = None
        self.sent = DeliveryRing()
        self.received = DeliveryRing()
        self._links.end()
