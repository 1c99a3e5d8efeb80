"""A frame of the recorded client as it must be for the broker of the replay.

Rule 1. A frame without a mapped field is sent byte for byte.
Rule 2. What the client chose stays: its channels, handles, link names, tags, container-id and its own delivery-ids.
Rule 3. What the recorded broker chose is replaced by what this one chose: the first transfer-id and delivery-count,
        delivery-ids, delivery-tags, dynamic addresses, and max-frame-size, by which transfers are split.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.framing.frames import FRAME_HEADER_SIZE, encode_frame
from ambermq.protocol.amqp10.message.message import decode_message
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import Attach, Disposition, Flow, Source, Target, Transfer
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.spec import Role
from ambermq.tools.proxy.connection_model import ConnectionModel
from ambermq.tools.proxy.frame_stream import FramePart
from ambermq.tools.proxy.link_model import SessionModel

__all__ = ["FrameMapping"]

_ADDRESS_MIN: Final = 8
"""The least length of a dynamic address that is searched for in a payload."""

_Terminus = TypeVar("_Terminus", Source, Target)


class FrameMapping:
    """The mapping of one connection: the model of the recording, and that of the replay."""

    def __init__(
        self, recorded: ConnectionModel, live: ConnectionModel, ordinals: Mapping[tuple[object, ...], int] | None = None
    ) -> None:
        """Map by two models; `ordinals` has the number of a live delivery by channel, link and recorded number."""
        self._recorded = recorded
        self._live = live
        self._ordinals = {} if ordinals is None else ordinals

    def mapped(self, part: FramePart) -> list[FramePart]:
        """Return the frames to send for a recorded one; raise ValueError if the broker accepts none for it."""
        performative = part.performative
        recorded, live = self._recorded.sessions.get(part.channel), self._live.sessions.get(part.channel)
        if performative is None or recorded is None or live is None:
            return self._fitted([part])
        match performative:
            case Attach():
                return self._fitted([self._attach(part, performative, recorded, live)])
            case Flow():
                return [_changed(part, _flow(performative, recorded, live))]
            case Disposition(role=Role.RECEIVER):
                return [
                    _changed(part, each)
                    for each in _disposition(performative, recorded, self._live_ids(recorded, live))
                ]
            case Transfer():
                return self._fitted(self._transfers(part, performative))
            case _:
                return self._fitted([part])

    def _addresses(self) -> dict[str, str]:
        """Return the dynamic addresses of this broker by those of the recorded one."""
        live = self._live.addresses.by_name
        recorded = self._recorded.addresses.by_name
        return {address: live[name] for name, address in recorded.items() if name in live and live[name] != address}

    def _live_ids(self, recorded: SessionModel, live: SessionModel) -> dict[int, int]:
        """Return the delivery-ids of this broker by those of the recorded one."""
        ids = live.received_ids()
        found = {}
        for number, delivery in recorded.received.items():
            key, ordinal = delivery.link.key, delivery.ordinal
            own = ids.get((key, self._ordinals.get((recorded.channel, *key, ordinal), ordinal)))
            if own is not None:
                found[number] = own
        return found

    def _attach(self, part: FramePart, attach: Attach, recorded: SessionModel, live: SessionModel) -> FramePart:
        addresses = self._addresses()
        source, target = attach.source, attach.target
        if source is not None and source.address in addresses:
            source = _at(source, addresses[source.address])
        if isinstance(target, Target) and target.address in addresses:
            target = _at(target, addresses[target.address])
        unsettled = attach.unsettled
        if unsettled:
            tags = _tags(recorded, live, self._live_ids(recorded, live))
            unsettled = {tags.get(tag, tag): state for tag, state in unsettled.items()}
        return _changed(part, replace(attach, source=source, target=target, unsettled=unsettled))

    def _transfers(self, part: FramePart, transfer: Transfer) -> list[FramePart]:
        """Return a transfer with the payload for this broker, in frames that it accepts."""
        payload = self._payload(part.payload, is_whole=not transfer.more)
        limit = self._frame_bytes_max()
        room = limit - FRAME_HEADER_SIZE - len(transfer.encode())
        if payload == part.payload and len(part.data) <= limit:
            return [part]
        if room <= 0:
            raise ValueError(f"a transfer does not fit into the broker's max-frame-size of {limit} bytes")
        frames = []
        for start in range(0, max(len(payload), 1), room):
            piece, has_more = payload[start : start + room], start + room < len(payload)
            head = replace(transfer, more=transfer.more or has_more)
            frames.append(_encoded(part, head, piece))
        return frames

    def _payload(self, payload: bytes, *, is_whole: bool) -> bytes:
        for old, new in self._addresses().items():
            if len(old) < _ADDRESS_MIN or old.encode() not in payload:
                continue
            if len(old) == len(new):
                payload = payload.replace(old.encode(), new.encode())
            elif is_whole:
                payload = _readdressed(payload, old, new)
        return payload

    def _fitted(self, parts: list[FramePart]) -> list[FramePart]:
        limit = self._frame_bytes_max()
        for part in parts:
            if len(part.data) > limit:
                name = "a frame" if part.performative is None else part.performative.TYPE
                size = f"{name} of {len(part.data)} bytes"
                raise ValueError(f"{size} does not fit into the broker's max-frame-size of {limit} bytes")
        return parts

    def _frame_bytes_max(self) -> int:
        # Before its open a broker is expected to accept what the recorded one accepted.
        return MASK if self._live.open is None else self._live.open.max_frame_size


def _at(terminus: _Terminus, address: str) -> _Terminus:
    return replace(terminus, address=address)


def _changed(part: FramePart, performative: Composite) -> FramePart:
    """Return the frame with a performative, byte for byte if that has not changed."""
    return part if performative == part.performative else _encoded(part, performative, part.payload)


def _encoded(part: FramePart, performative: Composite, payload: bytes) -> FramePart:
    data = encode_frame(part.channel, performative, payload)
    return FramePart(data, part.channel, part.is_sasl, performative, payload)


def _flow(flow: Flow, recorded: SessionModel, live: SessionModel) -> Flow:
    frames = live.broker_first_id - recorded.broker_first_id
    next_incoming_id = None if flow.next_incoming_id is None else (flow.next_incoming_id + frames) & MASK
    sent = live.sent_frames - recorded.sent_frames
    delivery_count = flow.delivery_count
    link = None if flow.handle is None else recorded.by_client_handle.get(flow.handle)
    if link is not None and not link.is_client_sender and delivery_count is not None and link.key in live.links:
        delivery_count = (delivery_count + live.links[link.key].initial_count - link.initial_count) & MASK
    return replace(
        flow,
        next_incoming_id=next_incoming_id,
        next_outgoing_id=(flow.next_outgoing_id + sent) & MASK,
        delivery_count=delivery_count,
    )


def _disposition(disposition: Disposition, recorded: SessionModel, ids: Mapping[int, int]) -> Iterator[Disposition]:
    """Yield the dispositions for the same deliveries; their ids may have gaps where the recorded ones had none."""
    last = disposition.first if disposition.last is None else disposition.last
    recorded_ids = recorded.ids_between(disposition.first, last, is_sent=False)
    if not recorded_ids:
        yield disposition
        return
    runs: list[list[int]] = []
    for number in sorted(ids[one] for one in recorded_ids if one in ids):
        if runs and runs[-1][1] + 1 == number:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    for first, end in runs:
        yield replace(disposition, first=first, last=None if disposition.last is None and first == end else end)


def _tags(recorded: SessionModel, live: SessionModel, ids: Mapping[int, int]) -> dict[bytes | None, bytes | None]:
    """Return the delivery-tags of this broker by those of the recorded one."""
    return {recorded.received[number].tag: live.received[own].tag for number, own in ids.items()}


def _readdressed(payload: bytes, old: str, new: str) -> bytes:
    """Return a message with another address in `to` and `reply-to`."""
    try:
        message = decode_message(payload)
    except DecodeError:
        return payload
    if message.properties is None:
        return payload
    for name in ("to", "reply_to"):
        if getattr(message.properties, name) == old:
            setattr(message.properties, name, new)
    return message.encode()
