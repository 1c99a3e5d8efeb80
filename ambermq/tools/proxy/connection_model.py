"""One connection as an observer sees it: the client's frames change its state, the broker's frames become facts.

Rule 1. The recording and the replay each have a model. The facts of both are compared.
Rule 2. What the broker sends behind the client's detach, end or close is chance: such messages and outcomes are no
        facts, only counted.
Rule 3. A flow is a fact only as the first one of a link and as the answer to a drain. Credit is state.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, cast

from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Modified,
    Open,
    Received,
    Released,
    SaslChallenge,
    SaslMechanisms,
    SaslOutcome,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.spec import Role
from ambermq.tools.proxy.broker_facts import (
    DynamicAddresses,
    Fact,
    attach_value,
    error_value,
    message_value,
    state_value,
)
from ambermq.tools.proxy.frame_stream import FramePart, HeaderPart, Part, UnreadablePart
from ambermq.tools.proxy.link_model import Delivery, LinkModel, SessionModel

__all__ = ["ConnectionModel"]

_COUNTED_ADDRESSES: Final = ("/log",)
"""Sources whose messages have offsets and times of their broker: they are counted, not compared."""


class ConnectionModel:
    """The state of one connection."""

    def __init__(self, number: int, addresses: DynamicAddresses) -> None:
        """Observe connection `number`; all connections of a broker share its `addresses`."""
        self._number = number
        self.addresses = addresses
        self.sessions: dict[int, SessionModel] = {}
        """By the client's channel."""
        self._by_broker_channel: dict[int, SessionModel] = {}
        self.open: Open | None = None
        """The broker's open."""
        self.late: Counter[tuple[object, ...]] = Counter()
        """How many facts of a key came behind the client's detach, end or close."""
        self.is_client_closed = False

    # The client's frames

    def sent(self, part: Part) -> None:
        """Note a part of the client."""
        if isinstance(part, FramePart) and part.performative is not None:
            self._sent(part.channel, part.performative)

    def _sent(self, channel: int, performative: Composite) -> None:
        if isinstance(performative, Begin):
            self.sessions[channel] = SessionModel(channel, performative.next_outgoing_id)
        elif isinstance(performative, Close):
            self.is_client_closed = True
        session = self.sessions.get(channel)
        if session is None:
            return
        match performative:
            case Attach():
                self._client_attach(session, performative)
            case Transfer():
                _client_transfer(session, performative)
            case Disposition():
                _client_disposition(session, performative)
            case Detach() if performative.handle in session.by_client_handle:
                link = session.by_client_handle.pop(performative.handle)
                link.is_client_detached = True
                _forget(session, link)
            case End():
                session.is_client_ended = True

    def _client_attach(self, session: SessionModel, attach: Attach) -> None:
        is_sender = attach.role == Role.SENDER
        terminus = attach.target if is_sender else attach.source
        address = terminus.address if isinstance(terminus, Source | Target) else None
        known = session.links.get((attach.name, is_sender))
        link = LinkModel(attach.name, is_sender, address or "")
        if is_sender:
            link.initial_count = attach.initial_delivery_count or 0
        if known is not None and known.broker_handle is not None and not known.is_client_detached:
            link = known
        session.links[link.key] = link
        session.by_client_handle[attach.handle] = link

    # The broker's frames

    def facts(self, part: Part) -> Iterator[Fact]:
        """Yield the facts in a part of the broker."""
        match part:
            case HeaderPart(data=data):
                yield Fact(("header",), data, f"the header {data!r}")
            case UnreadablePart(data=data):
                yield Fact(("unreadable",), None, f"{len(data)} bytes that are not AMQP")
            case FramePart(performative=None):
                return
            case FramePart(performative=performative, channel=channel, payload=payload) if performative is not None:
                for fact in self._facts(channel, performative, payload):
                    if self._is_late(fact):
                        self.late[fact.key] += 1
                    else:
                        yield fact

    def _facts(self, channel: int, performative: Composite, payload: bytes) -> Iterator[Fact]:
        match performative:
            case SaslMechanisms() | SaslChallenge():
                yield Fact((performative.TYPE,), None, performative.TYPE)
            case SaslOutcome(code=code):
                yield Fact((performative.TYPE,), code, f"sasl-outcome with code {code}")
            case Open():
                self.open = performative
                offered = sorted(str(one) for one in performative.offered_capabilities)
                yield Fact(("open",), offered, f"open with the capabilities {offered}")
            case Close(error=error):
                yield Fact(("close",), error_value(error), f"close {_with_error(error_value(error))}")
            case Begin():
                yield from self._begin(channel, performative)
            case _:
                session = self._by_broker_channel.get(channel)
                if session is not None:
                    yield from self._session_facts(session, performative, payload, channel)

    def _begin(self, channel: int, begin: Begin) -> Iterator[Fact]:
        session = None if begin.remote_channel is None else self.sessions.get(begin.remote_channel)
        if session is None:
            yield Fact(("begin", None), None, "begin of a session that the client did not begin")
            return
        self._by_broker_channel[channel] = session
        session.broker_first_id = begin.next_outgoing_id
        # The client may have sent transfers already, in a window that it could only assume.
        session.window = begin.incoming_window - session.sent_frames
        yield Fact(("begin", session.channel), None, f"begin for channel {session.channel}")

    def _session_facts(
        self, session: SessionModel, performative: Composite, payload: bytes, channel: int
    ) -> Iterator[Fact]:
        match performative:
            case Attach():
                yield self._attach(session, performative)
            case Flow():
                yield from _flow(session, performative)
            case Transfer():
                yield from self._transfer(session, performative, payload)
            case Disposition():
                yield from _disposition(session, performative)
            case Detach():
                yield from _detach(session, performative)
            case End(error=error):
                del self._by_broker_channel[channel]
                found = error_value(error)
                yield Fact(("end", session.channel), found, f"end of channel {session.channel} {_with_error(found)}")

    def _attach(self, session: SessionModel, attach: Attach) -> Fact:
        is_client_sender = attach.role == Role.RECEIVER
        link = session.links.get((attach.name, is_client_sender))
        if link is None:
            link = LinkModel(attach.name, is_client_sender, "")
        link.broker_handle = attach.handle
        session.by_broker_handle[attach.handle] = link
        if not is_client_sender:
            link.initial_count = attach.initial_delivery_count or 0
        for terminus in (attach.source, attach.target):
            if isinstance(terminus, Source | Target) and terminus.dynamic and terminus.address is not None:
                self.addresses.add(self._number, link.name, terminus.address)
        value = attach_value(attach, self.addresses.names)
        return Fact(("attach", session.channel, *link.key), value, f"attach of link {link.name!r} as {value}")

    def _transfer(self, session: SessionModel, transfer: Transfer, payload: bytes) -> Iterator[Fact]:
        link = session.by_broker_handle.get(transfer.handle)
        if link is None:
            return
        if link.partial is None:
            link.partial = bytearray()
            link.delivery_count += 1
            link.partial_id = transfer.delivery_id or 0
            if not transfer.settled:
                session.received[link.partial_id] = Delivery(link, link.delivery_count, transfer.delivery_tag)
        link.partial += payload
        if transfer.more and not transfer.aborted:
            return
        whole, link.partial = bytes(link.partial), None
        if transfer.aborted:
            session.received.pop(link.partial_id, None)
            return
        value, shown = (None, "") if link.address in _COUNTED_ADDRESSES else message_value(whole, self.addresses.names)
        key = ("message", session.channel, *link.key)
        settled = " settled" if transfer.settled else ""
        text = f"a{settled} message on link {link.name!r}: {shown}"
        value = value, bool(transfer.settled)
        yield Fact(key, value, text, link.delivery_count, not link.has_returns)

    def _is_late(self, fact: Fact) -> bool:
        """Return whether the fact came behind the client's frame that ended its object."""
        if fact.kind not in ("message", "outcome", "settled", "flow", "drain"):
            return False
        channel, name, is_client_sender = fact.key[1:4]
        session = self.sessions.get(cast("int", channel))
        if self.is_client_closed or session is None or session.is_client_ended:
            return True
        link = session.links.get((cast("str", name), cast("bool", is_client_sender)))
        return link is None or link.is_client_detached


def _client_transfer(session: SessionModel, transfer: Transfer) -> None:
    session.next_outgoing_id = (session.next_outgoing_id + 1) & MASK
    session.sent_frames += 1
    session.window -= 1
    link = session.by_client_handle.get(transfer.handle)
    if link is None:
        return
    if not link.is_unfinished:
        link.delivery_count += 1
        if not transfer.settled and transfer.delivery_id is not None:
            session.sent[transfer.delivery_id] = link
    link.is_unfinished = transfer.more and not transfer.aborted


def _client_disposition(session: SessionModel, disposition: Disposition) -> None:
    last = disposition.first if disposition.last is None else disposition.last
    is_sent = disposition.role == Role.SENDER
    for number in session.ids_between(disposition.first, last, is_sent=is_sent):
        if not is_sent and isinstance(disposition.state, Released | Modified):
            session.received[number].link.has_returns = True
        if disposition.settled:
            del (session.sent if is_sent else session.received)[number]


def _forget(session: SessionModel, link: LinkModel) -> None:
    """Forget the deliveries of a link."""
    session.sent = {number: of for number, of in session.sent.items() if of is not link}
    session.received = {number: one for number, one in session.received.items() if one.link is not link}


def _flow(session: SessionModel, flow: Flow) -> Iterator[Fact]:
    if flow.next_incoming_id is not None:
        ahead = (session.next_outgoing_id - flow.next_incoming_id) & MASK
        session.window = flow.incoming_window - ahead
    link = None if flow.handle is None else session.by_broker_handle.get(flow.handle)
    if link is None:
        return
    if link.is_client_sender and flow.link_credit is not None:
        seen = link.initial_count if flow.delivery_count is None else flow.delivery_count
        link.credit_limit = (seen + flow.link_credit) & MASK
    if not link.is_flow_seen:
        link.is_flow_seen = True
        yield Fact(("flow", session.channel, *link.key), None, f"flow of link {link.name!r}")
    if flow.drain and not link.is_client_sender:
        yield Fact(("drain", session.channel, *link.key), None, f"the end of a drain of link {link.name!r}")


def _disposition(session: SessionModel, disposition: Disposition) -> Iterator[Fact]:
    last = disposition.first if disposition.last is None else disposition.last
    is_sent = disposition.role == Role.RECEIVER
    state, settled = disposition.state, disposition.settled
    if not settled and (state is None or isinstance(state, Received)):
        return
    found = state_value(state)
    for number in session.ids_between(disposition.first, last, is_sent=is_sent):
        link = session.sent[number] if is_sent else session.received[number].link
        ordinal = number if is_sent else session.received[number].ordinal
        if settled:
            del (session.sent if is_sent else session.received)[number]
        key = ("outcome" if is_sent else "settled", session.channel, *link.key, ordinal)
        yield Fact(key, (found, settled), f"{found} for delivery {ordinal} of link {link.name!r}")


def _detach(session: SessionModel, detach: Detach) -> Iterator[Fact]:
    link = session.by_broker_handle.pop(detach.handle, None)
    if link is None:
        return
    link.broker_handle = None
    _forget(session, link)
    condition = error_value(detach.error)
    word = "closing detach" if detach.closed else "detach"
    shown = f"{word} of link {link.name!r} {_with_error(condition)}"
    yield Fact(("detach", session.channel, *link.key), (detach.closed, condition), shown)


def _with_error(condition: str) -> str:
    return f"with {condition}" if condition else "without an error"
