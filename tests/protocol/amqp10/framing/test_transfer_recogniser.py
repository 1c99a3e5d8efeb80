"""The recogniser may decline, never decide: for any bytes, what is told and said is the same with and without it."""

import random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.events import CreditChanged, Disposed, Event, LinkDetached, SessionEnded, TransferRun
from ambermq.protocol.amqp10.framing.disposition_recogniser import read_disposition
from ambermq.protocol.amqp10.framing.transfer_recogniser import read_flow
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    DeliveryState,
    Disposition,
    Flow,
    Modified,
    Received,
    Rejected,
    Released,
    Transfer,
)
from tests.protocol.amqp10.session.test_session import RECEIVER, SENDER, flow
from tests.protocol.peers import FIRST_ID, Wire

LIMITS = ConnectionLimits(window_frames=50, frame_bytes_max=2000, message_bytes_max=600, large_payload_bytes=400)


def flat(events: list[Event]) -> list[object]:
    """The events message by message, so that runs of any length compare equal.

    A range tells what was told before ahead of the rest, so what one read settles is put in order of its ids.
    """
    told: list[object] = []
    disposed: list[tuple[int, int, str, object, bool]] = []
    for event in events:
        if not isinstance(event, Disposed):
            told += sorted(disposed, key=lambda each: each[:3])
            disposed.clear()
        match event:
            case TransferRun():
                told += [
                    ((event.first_id + i) & 0xFFFFFFFF, bytes(payload), event.settled, event.link.name)
                    for i, payload in enumerate(event.payloads)
                ]
            case Disposed():
                disposed += [
                    ((event.first_id + i) & 0xFFFFFFFF, token, event.link.name, event.state, event.settled)
                    for i, token in enumerate(event.tokens)
                ]
            case LinkDetached() | SessionEnded():
                told.append((type(event), event.error))
            case CreditChanged():
                told.append((event.link.name, event.link.credit))
            case _:
                told.append(type(event))
    return told + sorted(disposed, key=lambda each: each[:3])


def outcome(pieces: list[bytes], *, recognised: bool) -> tuple[object, ...]:
    """What a server with two links up and one down tells and says about the pieces, and what it holds in the end."""
    wire = Wire(LIMITS, credit=80)
    wire.say(
        wire.attach(role=SENDER, name="a"),
        wire.attach(role=SENDER, name="b", handle=300),
        wire.attach(role=RECEIVER, name="c", handle=2),
        flow(handle=2, delivery_count=0, link_credit=20, next_incoming_id=FIRST_ID),
    )
    session = wire.session()
    session.links()[2].send_run(range(20), [b"x"] * 20)  # type: ignore[attr-defined]
    wire.read()
    wire.events.clear()
    if recognised:
        for piece in pieces:
            wire.give(piece)
    else:
        with (
            patch("ambermq.protocol.amqp10.session.incoming_transfers.learn", return_value=None),
            patch("ambermq.protocol.amqp10.session.frame_dispatch.read_flow", return_value=None),
            patch("ambermq.protocol.amqp10.session.dispositions.read_disposition", return_value=None),
        ):
            for piece in pieces:
                wire.give(piece)
    said = wire.read()
    links = [(link.name, link.credit, link.delivery_count, link.state) for link in session.links()]
    return flat(wire.events), said, links, session.sent.count, session.received.count, wire.server.state


def transfers(draw: random.Random, count: int) -> list[bytes]:
    """Mostly alike transfers, with every exception there is now and then."""
    frames: list[bytes] = []
    delivery_id = FIRST_ID
    for _ in range(count):
        handle = draw.choice((0, 0, 0, 300))
        odd = draw.random()
        fields: dict[str, object] = {"settled": draw.random() < 0.1 or None}
        if odd < 0.05:
            fields["more"] = True
        elif odd < 0.08:
            fields["message_format"] = draw.choice((0, 5))
        elif odd < 0.1:
            fields["aborted"] = True
        elif odd < 0.12:
            fields["state"] = Accepted()
        elif odd < 0.14:
            fields["batchable"] = True
        elif odd < 0.15:
            delivery_id += draw.choice((-1, 1, 5))
        elif odd < 0.16:
            fields["rcv_settle_mode"] = 0
        payload = bytes(draw.choice((0, 1, 10, 10, 10, 100, 500 if draw.random() < 0.2 else 10)))
        transfer = Transfer(
            handle=handle,
            delivery_id=delivery_id & 0xFFFFFFFF,
            delivery_tag=bytes(draw.choice((0, 4, 4, 4, 16))),
            **fields,  # type: ignore[arg-type]
        )
        width = draw.random() < 0.9
        body = transfer.encode(full_width=width) + payload
        frames.append((8 + len(body)).to_bytes(4, "big") + b"\2\0\0\0" + body)
        delivery_id += 1
    return frames


def others(draw: random.Random) -> bytes:
    """A flow or a disposition of any kind."""
    state: DeliveryState | None = draw.choice(
        (
            None,
            Accepted(),
            Released(),
            Modified(),
            Modified(delivery_failed=True),
            Rejected(),
            Received(section_number=1, section_offset=2),
        )
    )
    first = FIRST_ID + draw.randrange(25)
    performative = draw.choice(
        (
            Disposition(
                role=draw.random() < 0.8,
                first=first & 0xFFFFFFFF,
                last=draw.choice((None, (first + draw.randrange(8)) & 0xFFFFFFFF)),
                settled=draw.random() < 0.7,
                state=state,
                batchable=draw.random() < 0.2,
            ),
            flow(
                handle=draw.choice((None, 0, 2, 2)),
                delivery_count=draw.choice((None, 0, 5, 20)),
                link_credit=draw.choice((0, 20, 300, 70000)),
                next_incoming_id=draw.choice((None, FIRST_ID, 17)),
                drain=draw.random() < 0.2,
                echo=draw.random() < 0.2,
                properties=draw.choice((None, None, {"x": 1})),
            ),
        )
    )
    body = performative.encode(full_width=draw.random() < 0.5)
    return (8 + len(body)).to_bytes(4, "big") + b"\2\0\0\0" + body


def settlements(draw: random.Random) -> list[bytes]:
    """What a receiver says that settles one by one, or a few at a time; ids may repeat, leap and wrap."""
    frames: list[bytes] = []
    first = (FIRST_ID + draw.randrange(4)) & 0xFFFFFFFF if draw.random() < 0.9 else draw.randrange(300)
    has_last, width = draw.random() < 0.5, draw.random() < 0.5
    state: DeliveryState | None = draw.choice((Accepted(), Accepted(), Released(), Modified(), None))
    for _ in range(draw.choice((2, 6, 20))):
        step = draw.choice((0, 0, 0, 2)) if has_last else 0
        last = (first + step) & 0xFFFFFFFF
        performative = Disposition(
            role=RECEIVER, first=first, last=last if has_last else None, settled=draw.random() < 0.95, state=state
        )
        body = performative.encode(full_width=width)
        frames.append((8 + len(body)).to_bytes(4, "big") + b"\2\0\0\0" + body)
        first = (last + draw.choice((1,) * 8 + (0, 2, 0xFFFFFFFF))) & 0xFFFFFFFF
        if draw.random() < 0.05:
            has_last = not has_last
    return frames


def cut_at_random(draw: random.Random, data: bytes) -> list[bytes]:
    pieces = []
    while data:
        size = draw.choice((1, 50, 1000, 5000, len(data)))
        pieces.append(data[:size])
        data = data[size:]
    return pieces


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_on_equals_off(seed: int, mutated: bool) -> None:
    """Streams of transfers, flows and dispositions, mutated or not, mean the same with and without the recogniser."""
    draw = random.Random(seed)
    frames = transfers(draw, draw.choice((3, 40)))
    for _ in range(draw.randrange(6)):
        frames.insert(draw.randrange(len(frames) + 1), others(draw))
    for _ in range(draw.randrange(3)):
        at = draw.randrange(len(frames) + 1)
        frames[at:at] = settlements(draw)
    data = bytearray(b"".join(frames))
    if mutated:
        for _ in range(draw.choice((1, 3))):
            data[draw.randrange(len(data))] = draw.choice(
                (0, 1, 0x40, 0x41, 0x43, 0x52, 0x70, 0xFF, draw.randrange(256))
            )
    pieces = cut_at_random(draw, bytes(data))
    assert outcome(pieces, recognised=True) == outcome(pieces, recognised=False)


def test_alike_transfers_are_one_run() -> None:
    """A read full of alike transfers is told as one run behind the first, across the wrap of delivery-ids."""
    wire = Wire(credit=1000)
    wire.say(wire.attach(role=SENDER))
    wire.events.clear()
    frames = [
        wire.frame(Transfer(handle=0, delivery_id=(FIRST_ID + i) & 0xFFFFFFFF, delivery_tag=bytes(16)), bytes([i]))
        for i in range(256)
    ]
    wire.give(frames[0])
    wire.give(b"".join(frames[1:3]))
    wire.events.clear()
    wide = [
        Transfer(handle=0, delivery_id=i, delivery_tag=bytes(16), settled=False, more=False).encode(full_width=True)
        for i in range(256, 400)
    ]
    assert len(wide) == 144
    wire.give(b"".join(frames[3:]))
    lengths = [len(event.payloads) for event in wire.events if isinstance(event, TransferRun)]
    assert sum(lengths) == 253
    assert len(lengths) <= 3


@pytest.mark.parametrize("ended", ["link", "session", "connection"])
def test_nothing_is_recognised_behind_our_own_end(ended: str) -> None:
    """A read like the last one tells nothing any more once we have ended the link, the session or the connection."""
    wire = Wire(credit=10)
    wire.say(wire.attach(role=SENDER))
    frames = [
        wire.frame(Transfer(handle=0, delivery_id=(FIRST_ID + i) & 0xFFFFFFFF, delivery_tag=b"t"), b"x")
        for i in range(3)
    ]
    wire.give(frames[0])
    wire.give(frames[1])
    assert sum(isinstance(event, TransferRun) for event in wire.events) == 2
    session = wire.session()
    left = session.windows.left
    {"link": session.links()[0].detach, "session": session.end, "connection": wire.server.close}[ended]()
    wire.events.clear()
    wire.give(frames[2])
    assert wire.events == []
    # The window counts what comes for a link that has ended, too.
    assert session.windows.left == left - (ended == "link")


def test_a_read_that_begins_within_a_frame_is_cut_into_frames() -> None:
    """Whatever the rest of a frame looks like: here it is a whole transfer, as the payload of another."""
    wire = Wire(credit=10)
    wire.say(wire.attach(role=SENDER))
    inner = wire.frame(Transfer(handle=0, delivery_id=(FIRST_ID + 1) & 0xFFFFFFFF, delivery_tag=b"t"), b"x")
    for index, payload in enumerate((b"x", inner)):
        frame = wire.frame(Transfer(handle=0, delivery_id=(FIRST_ID + index) & 0xFFFFFFFF, delivery_tag=b"t"), payload)
        cut_at = len(frame) - len(inner)
        wire.give(frame[:cut_at] if cut_at > 0 else frame)
        wire.give(frame[cut_at:] if cut_at > 0 else b"")
    runs = [event.payloads for event in wire.events if isinstance(event, TransferRun)]
    assert runs == [[b"x"], [inner]]


def settled(wire: Wire) -> list[tuple[int, int]]:
    """First id and count of what the server was told is settled, and forget it."""
    told = [(event.first_id, len(event.tokens)) for event in wire.events if isinstance(event, Disposed)]
    wire.events.clear()
    return told


def receiving(count: int) -> Wire:
    """A server that has sent so many messages on one link."""
    wire = Wire()
    wire.say(
        wire.attach(role=RECEIVER),
        flow(handle=0, delivery_count=0, link_credit=count, next_incoming_id=FIRST_ID, incoming_window=1000),
    )
    wire.session().links()[0].send_run(range(count), [b"x"] * count)  # type: ignore[attr-defined]
    wire.read()
    wire.events.clear()
    return wire


@pytest.mark.parametrize("has_last", [False, True])
@pytest.mark.parametrize("full_width", [False, True])
def test_alike_dispositions_are_one_range(has_last: bool, full_width: bool) -> None:
    """Messages settled one by one in one read are told as one range behind the first, across the wrap of ids."""
    wire = receiving(200)
    frames = []
    for index in range(200):
        at = (FIRST_ID + index) & 0xFFFFFFFF
        said = Disposition(role=RECEIVER, first=at, last=at if has_last else None, settled=True, state=Accepted())
        body = said.encode(full_width=full_width)
        frames.append((8 + len(body)).to_bytes(4, "big") + b"\2\0\0\0" + body)
    wire.give(frames[0])
    assert settled(wire) == [(FIRST_ID, 1)]
    wire.give(b"".join(frames[1:]))
    told = settled(wire)
    assert sum(count for _, count in told) == 199
    assert len(told) <= 4
    assert wire.session().sent.count == 0


def test_a_last_id_of_another_type_is_a_fault() -> None:
    """Four bytes that are no uint are refused, though everything around them is as it was."""
    wire = receiving(20)
    one, two = (
        Disposition(role=RECEIVER, first=at, last=at, settled=True).encode(full_width=True)
        for at in (FIRST_ID, FIRST_ID + 1)
    )
    code_at = two.rindex(b"\x70")
    wrong = two[:code_at] + b"\x71" + two[code_at + 1 :]
    wire.give(b"".join((8 + len(body)).to_bytes(4, "big") + b"\2\0\0\0" + body for body in (one, wrong)))
    assert settled(wire) == [(FIRST_ID, 1)]
    assert wire.server.is_ended


def test_a_range_round_the_circle_is_not_joined() -> None:
    """What follows the last range and claims all ids is told by itself: joined, it would claim less."""
    wire = receiving(20)
    ranges = [(FIRST_ID + 5, FIRST_ID + 6), (FIRST_ID + 7, FIRST_ID + 8), (FIRST_ID + 9, FIRST_ID + 8)]
    data = b"".join(
        wire.frame(Disposition(role=RECEIVER, first=first & 0xFFFFFFFF, last=last & 0xFFFFFFFF, settled=True))
        for first, last in ranges
    )
    wire.give(data)
    assert wire.session().sent.count == 0


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40), st.sampled_from((b"\0S\x13", b"\0S\x15")))
def test_plain_readers_never_raise(body: bytes, descriptor: bytes) -> None:
    """Whatever the bytes, the plain readers read or decline."""
    data = descriptor + body
    fields = read_flow(data, 0, len(data))
    said = read_disposition(data, 0, len(data))
    assert fields is None or len(fields) == 10
    assert said is None or len(said) == 5


def test_plain_readers_read_ours() -> None:
    """What we write ourselves is plain."""
    written = Flow(next_incoming_id=1, incoming_window=2, next_outgoing_id=3, outgoing_window=4, handle=5, drain=True)
    data = written.encode()
    assert read_flow(data, 0, len(data)) == [1, 2, 3, 4, 5, None, None, None, True, False]
    data = Disposition(role=RECEIVER, first=1, last=0xFFFFFFFF, settled=True, state=Accepted()).encode()
    assert read_disposition(data, 0, len(data)) == (True, 1, 0xFFFFFFFF, True, Accepted())
