"""A session: delivery-ids, windows, and the links that share them (transport, 2.5).

Rule 1. After our end all frames are ignored until the peer's end. After the peer's end no frame is sent.
Rule 2. Settlements are delayed until the output is taken, so those of one tick leave as ranges. Each detach, end or
        close is preceded by them.
Rule 3. A fault is raised where it is found. `IncomingTransfers.receive` or the connection ends its scope.
Rule 4. A call on an ended session has no effect; it holds no deliveries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from ambermq.protocol.amqp10.errors import FramingError, LocalError, SessionFault
from ambermq.protocol.amqp10.events import CreditChanged, SessionEnded
from ambermq.protocol.amqp10.framing.frame_templates import write_flow
from ambermq.protocol.amqp10.link.link import BLOCKED, Link
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.resumption import UnsettledMap
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.memory_budget import UNSETTLED_BYTES
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
from ambermq.protocol.amqp10.spec import AmqpCondition, Role, SessionCondition
from ambermq.protocol.amqp10.state_tables import SESSION_TABLE, LinkState, SessionInput, SessionState
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["LINK_FRAME_COST", "Session"]

LINK_FRAME_COST: Final = 8
_LONG_FRAME_BYTES: Final = 512
_BYTES_PER_COST: Final = 8
"""A longer attach costs one more for each of so many bytes: a selector is parsed at up to 4 us a byte."""
"""The cost of an attach or a detach, in flows: with the engine's work for it about 0.1 ms."""

# Module names, since the access to an enumeration member costs as much as a call.
_MAPPED: Final = SessionState.MAPPED
_TRANSACTION: Final = "txn-id"
"""The property of a flow that asks to acquire messages in a transaction."""
_REASON_MAX: Final = 64
"""The kept characters of a peer's reason."""


class Session:
    """One session of a connection."""

    __slots__ = (
        "_is_reopened",
        "_links",
        "_waiting",
        "_waiting_bytes",
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
        """Our channel; the peer numbers its channels itself."""
        self.remote_channel = -1
        self.state = SessionState.UNMAPPED
        self._links = LinkRegistry(self)
        limits = connection.limits
        self.windows = FlowWindows(min(limits.window_frames, limits.unsettled_max), first_id)
        self.incoming = IncomingTransfers(self, self._links)
        """The incoming transfers."""
        self.dispositions = Dispositions(self, self._links)
        """The incoming dispositions."""
        self.settlements = OutgoingDispositions(self)
        """The outgoing dispositions."""
        self.unsettled_max = limits.unsettled_max
        """How many deliveries may be unsettled, in each direction."""
        self.next_sent_id = first_id
        self.sent = DeliveryRing()
        """The sent deliveries that are not settled."""
        self.is_awaited = False
        """Whether a link waits for room: the session has too many unsettled deliveries."""
        self.received = DeliveryRing()
        """The received deliveries that are not settled."""
        self.has_second = False
        """Whether a received delivery has receiver-settle-mode second."""
        self._waiting: deque[tuple[Link, Buffer, Buffer]] | None = None
        """The transfers that wait for the peer's window; while there are any, no other transfer is sent."""
        self._waiting_bytes = 0
        self._is_reopened = False

    # Calls of the owner

    @property
    def is_live(self) -> bool:
        """Return whether the session is mapped at both ends, as far as we know."""
        return self.state is _MAPPED

    @property
    def is_full(self) -> bool:
        """Return whether no delivery may be sent until the peer settles one."""
        return self.sent.count >= self.unsettled_max

    def await_room(self) -> None:
        """Note that a link waits for room, if the session is full."""
        if self.is_full:
            self.is_awaited = True

    @property
    def unsettled_counts(self) -> tuple[int, int]:
        """The deliveries without an outcome: received from the peer, and sent to it."""
        return self.received.count, self.sent.count

    def links(self) -> list[Link]:
        """Return the links that are not detached at both ends; for an ended session the links that it had."""
        return self._links.all()

    def attach_sender(
        self, name: str, source: Source | None, target: Target | Coordinator | None, *, initial_delivery_count: int = 0,
        sender_settle_mode: int = 2, receiver_settle_mode: int = 0, properties: dict[Any, Any] | None = None,
        desired_capabilities: Sequence[str] = (), unsettled: UnsettledMap | None = None,
    ) -> Sender:  # fmt: skip
        """Attach a link on which we send; LinkAttached reports the answer. Raises LocalError if no handle is free."""
        link = Sender(self, name, self._links.free_handle(), initial_delivery_count)
        modes = sender_settle_mode, receiver_settle_mode
        self._attach(link, source, target, modes, properties, desired_capabilities, unsettled)
        return link

    def attach_receiver(
        self, name: str, source: Source | None, target: Target | None, *,
        sender_settle_mode: int = 2, receiver_settle_mode: int = 0, properties: dict[Any, Any] | None = None,
        desired_capabilities: Sequence[str] = (), unsettled: UnsettledMap | None = None,
    ) -> Receiver:  # fmt: skip
        """Attach a link on which we receive; see attach_sender. Credit may be granted at once."""
        link = Receiver(self, name, self._links.free_handle())
        modes = sender_settle_mode, receiver_settle_mode
        self._attach(link, source, target, modes, properties, desired_capabilities, unsettled)
        return link

    def settle(self, first_id: int, count: int, state: DeliveryState | None) -> None:
        """Send the state of received deliveries with consecutive ids, and settle them; unknown ids are left out.

        Deliveries in receiver-settle-mode second stay unsettled until the peer settles them. The caller must not change
        the state afterwards.
        """
        if count <= 0:
            return
        last_id = (first_id + count - 1) & MASK
        if not self.has_second:
            for run in self.received.take(first_id, last_id):
                self.settlements.add(run, state, settled=True, role=Role.RECEIVER)
            return
        for run in self.received.find(first_id, last_id):
            if not run.is_second:
                self.received.take(run.first_id, (run.first_id + run.count - 1) & MASK)
            self.settlements.add(run, state, settled=not run.is_second, role=Role.RECEIVER)

    def settle_sent(self, first_id: int, count: int, state: DeliveryState | None) -> None:
        """Settle sent deliveries, with their final state; ids that are not held are left out."""
        if count <= 0:
            return
        for run in self.sent.take(first_id, (first_id + count - 1) & MASK):
            self.settlements.add(run, state, settled=True, role=Role.SENDER)

    def pause(self) -> None:
        """Close the incoming window, at once or when no delivery is unfinished; transfers in flight still arrive."""
        if not self.windows.is_paused:
            self.windows.is_paused = True
            self.send_flow()

    def resume(self) -> None:
        """Open the incoming window again."""
        if self.windows.is_paused:
            self.windows.is_paused = False
            self.send_flow()

    def close_window(self) -> None:
        """Close the incoming window at once, although deliveries are unfinished; transfers in flight still arrive."""
        if not self.windows.is_held:
            self.windows.is_held = True
            self.send_flow()

    def open_window(self) -> None:
        """Open the window that `close_window` has closed."""
        if self.windows.is_held:
            self.windows.is_held = False
            self.send_flow()

    def end(self, error: Error | None = None) -> None:
        """End the session from our end; the peer's answer appends no event."""
        if self.state not in (SessionState.MAPPED, SessionState.BEGIN_SENT):
            return
        self.flush()
        self.send(End(error=error))
        self.state = SESSION_TABLE[self.state, SessionInput.SEND_END]
        self._forget()

    # Calls of the links

    def send(self, performative: Composite) -> None:
        """Write a frame on our channel."""
        if self.state in (SessionState.MAPPED, SessionState.BEGIN_SENT):
            self.connection.send(self.channel, performative)

    def send_flow(
        self, link: Link | None = None, *, drain: bool = False, properties: dict[Any, Any] | None = None
    ) -> None:
        """Write a flow with both windows, and with the state of `link` if it is given."""
        if self.state not in (SessionState.MAPPED, SessionState.BEGIN_SENT):
            return
        windows = self.windows
        flow = Flow(
            next_incoming_id=windows.next_incoming_id,
            incoming_window=windows.incoming(self._room),
            next_outgoing_id=windows.next_outgoing_id,
            outgoing_window=OUTGOING_WINDOW,
            properties=properties,
        )
        if link is not None:
            flow.handle = link.handle
            flow.delivery_count, flow.link_credit, flow.available = link.flow_fields()
            flow.drain = drain
            flow.properties = properties
        self.connection.output.add(write_flow(self.channel, flow))

    def begin_delivery(self) -> None:
        """Count a delivery of several frames that begins."""
        self.windows.unfinished += 1
        self.connection.memory.begin_delivery()

    def end_delivery(self, size: int, *, is_complete: bool) -> None:
        """Count a delivery of several frames that has ended; it held `size` bytes."""
        self.windows.unfinished -= 1
        self.connection.memory.end_delivery(size, is_complete=is_complete)
        if self.windows.is_paused and not self.windows.unfinished:
            self.send_flow()

    def send_or_wait(self, link: Link, head: bytes, payload: Buffer) -> None:
        """Write one transfer, now or when the peer's window opens."""
        if self._waiting or self.windows.remote <= 0:
            if self._waiting is None:
                self._waiting = deque()
            self._waiting.append((link, head, payload))
            self._waiting_bytes += len(payload)
            return
        self._send_transfer(head, payload)

    def release(self, link: Link) -> None:
        """Drop the deliveries of a link that has detached."""
        # The peer's answer to our attach finds the link by its name.
        if link.remote is not None:
            self._links.forget_name(link)
        self.sent.drop(link)
        self.received.drop(link)
        if self.windows.left <= self.windows.low:
            # Its unsettled deliveries limited the window.
            self.mark_dirty()
        link.drop_partial()
        link.shape = None
        if self._waiting:
            self._waiting = deque(entry for entry in self._waiting if entry[0] is not link)
            self._waiting_bytes = sum(len(payload) for _, _, payload in self._waiting)

    def flush(self) -> None:
        """Write the output that is delayed to the end of the tick: settlements, and a due window."""
        self.settlements.flush()
        windows = self.windows
        if windows.left <= windows.low and self.state is _MAPPED and windows.is_due(self._room):
            self.send_flow()

    # Calls of the connection

    def surveyed_bytes(self) -> int:
        """Return an estimate of the memory of unsettled deliveries and of waiting transfers."""
        return (self.sent.count + self.received.count) * UNSETTLED_BYTES + self._waiting_bytes

    def begin(self, remote_channel: int | None = None) -> None:
        """Write our begin; with `remote_channel` it answers the peer's."""
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
        """Process the peer's begin, the first one or the answer to ours."""
        self.state = SESSION_TABLE[self.state, SessionInput.RECEIVE_BEGIN]
        self.remote_channel = channel
        self.windows.next_incoming_id = begin.next_outgoing_id
        self.windows.remote = begin.incoming_window
        self._links.remote_handle_max = begin.handle_max

    def receive_end(self) -> bool:
        """Process the peer's end, and answer it. Return whether the peer ended first."""
        self.state = SESSION_TABLE[self.state, SessionInput.RECEIVE_END]
        if self.state is SessionState.UNMAPPED:
            return False
        self.connection.send(self.channel, End())
        self.state = SESSION_TABLE[self.state, SessionInput.SEND_END]
        self._forget()
        return True

    def drop(self) -> None:
        """End with the connection, without a frame."""
        self.state = SessionState.UNMAPPED
        self._forget()

    def release_parts(self) -> None:
        """Drop the parts that refer back to this session, which has ended: so it is freed at once.

        Calls that the rule above allows for an ended session need none of these parts, except `links`.
        """
        del self._links, self.incoming, self.dispositions, self.settlements

    def fail(self, condition: str, description: str) -> None:
        """End because of the peer's fault, and append SessionEnded."""
        error = Error(condition=condition, description=description)
        self.end(error)
        self.connection.events.append(SessionEnded(self, error))

    def receive(self, performative: Composite, frame_bytes: int) -> None:
        """Process an attach or a detach. Raises FramingError or SessionFault if it is illegal."""
        self.connection.turn_cost += LINK_FRAME_COST + max(frame_bytes - _LONG_FRAME_BYTES, 0) // _BYTES_PER_COST
        if type(performative) is Attach:
            self._links.receive_attach(performative)
        elif type(performative) is Detach:
            self._links.receive_detach(performative)
        else:
            raise FramingError(f"{performative.NAME} on the channel of a session, which does not take it")

    def receive_flow(self, fields: list[int | bool | None]) -> None:
        """Process a flow, as its ten fields in wire order. Raises SessionFault for a handle without a link."""
        windows = self.windows
        before = windows.remote
        windows.receive_flow(fields[0], fields[1])  # type: ignore[arg-type]  # both readers checked the mandatory ones
        handle, echo = fields[4], bool(fields[9])
        if handle is not None:
            link = self._links.by_handle.get(handle)
            if link is None:
                raise SessionFault(SessionCondition.UNATTACHED_HANDLE, f"flow for handle {handle}, which has no link")
            if link.state is LinkState.ATTACHED or link.state is LinkState.ATTACH_RECEIVED:
                link.receive_flow(fields[5], fields[6], drain=bool(fields[8]), echo=echo)
        elif echo:
            self.send_flow()
        if windows.remote > before and (handle is None or before <= 0 or self._waiting):
            self._window_opened()

    def receive_flow_properties(self, handle: int, properties: dict[Any, Any]) -> None:
        """Process the properties of a link's flow: the reason for which the peer holds the link back."""
        link = self._links.by_handle.get(handle)
        is_open = link is not None and link.state in {LinkState.ATTACHED, LinkState.ATTACH_RECEIVED}
        if link is not None and link.is_sender and _TRANSACTION in properties and is_open:
            # Acquired outside, the messages would not wait for the end of the transaction (transactions, 4.4.3).
            link.fail(AmqpCondition.NOT_IMPLEMENTED, "a flow in a transaction: the broker acquires outside of it")
        elif link is not None and BLOCKED in properties:
            reason = properties[BLOCKED]
            link.blocked = reason[:_REASON_MAX] if isinstance(reason, str) else ""

    def report_reopened(self) -> None:
        """Append CreditChanged for the senders with credit, once a read: the window opened."""
        self._is_reopened = False
        links = [link for link in self._links.all() if link.is_sender and (link.credit or link.is_sending)]
        self.connection.events.extend(CreditChanged(link) for link in links if link.is_live)

    # Private

    def _attach(
        self, link: Link, source: Source | None, target: Target | Coordinator | None,
        modes: tuple[int, int], properties: dict[Any, Any] | None, desired_capabilities: Sequence[str],
        unsettled: UnsettledMap | None,
    ) -> None:  # fmt: skip
        if self.state not in (SessionState.MAPPED, SessionState.BEGIN_SENT):
            raise LocalError(f"attach in session state {self.state.name}")
        self._links.add(link)
        link.sender_settle_mode, link.receiver_settle_mode = modes
        link.send_attach(
            source, target, properties=properties, desired_capabilities=desired_capabilities, unsettled=unsettled
        )

    @property
    def _room(self) -> int:
        return self.unsettled_max - self.received.count

    def mark_dirty(self) -> None:
        """Ask the connection for a flush when the output is taken."""
        self.connection.dirty[self] = None

    def _send_transfer(self, head: Buffer, payload: Buffer) -> None:
        self.windows.sent(1)
        self.connection.output.add(head)
        self.connection.output.add(payload)

    def _window_opened(self) -> None:
        """Send the waiting transfers; if the window is still open, the senders get CreditChanged."""
        while self._waiting and self.windows.remote > 0:
            _, head, payload = self._waiting.popleft()
            self._waiting_bytes -= len(payload)
            self._send_transfer(head, payload)
        if not self._waiting and not self._is_reopened:
            self._is_reopened = True
            self.connection.reopened.append(self)

    def _forget(self) -> None:
        """Drop all deliveries and detach the links; `links` still returns them."""
        self.connection.recogniser = None
        self.settlements.drop()
        self._waiting, self._waiting_bytes = None, 0
        self.sent = DeliveryRing()
        self.received = DeliveryRing()
        self._links.end()
