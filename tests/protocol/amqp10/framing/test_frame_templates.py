"""Frames packed from templates mean what the general encoder writes, at full width."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.framing.frame_templates import TransferTemplate, write_flow
from ambermq.protocol.amqp10.performatives.classes import Flow, Transfer
from tests.protocol.peers import cut, fields_written

UINT = st.integers(0, 0xFFFFFFFF)


@settings(max_examples=100, deadline=None)
@given(
    st.fixed_dictionaries({"next_outgoing_id": UINT, "incoming_window": UINT, "outgoing_window": UINT}),
    st.fixed_dictionaries({"next_incoming_id": st.none() | UINT}),
    st.fixed_dictionaries(
        {"handle": st.none() | UINT, "delivery_count": st.none() | UINT, "link_credit": UINT, "available": UINT}
    ),
    st.booleans(),
    st.booleans(),
)
def test_flow(
    windows: dict[str, int], incoming: dict[str, int | None], link: dict[str, int | None], drain: bool, echo: bool
) -> None:
    """A flow is written with all its fields, with a link's state or without."""
    flow = Flow(**windows, **incoming, echo=echo)  # type: ignore[arg-type]
    if link["handle"] is not None:
        flow = Flow(**windows, **incoming, **link, drain=drain, echo=echo)  # type: ignore[arg-type]
    frame = write_flow(7, flow)
    assert cut(frame) == [(7, flow, b"")]
    assert fields_written(frame) == len(Flow.FIELDS)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2**64 - 1), st.binary(max_size=50), st.integers(0, 2)), min_size=1, max_size=5),
    UINT,
    st.sampled_from((0, 1, 0xFFFFFFFF)),
    st.booleans(),
)
def test_run(messages: list[tuple[int, bytes, int]], first: int, message_format: int, settled: bool) -> None:
    """A run is one frame a message, consecutive across the wrap, whatever kind of buffer the payloads are."""
    template = TransferTemplate(5, 300, b"prefix!!", message_format, settled=settled)
    kinds = (bytes, bytearray, memoryview)
    data = template.join(
        first, [token for token, _, _ in messages], [kinds[kind](payload) for _, payload, kind in messages]
    )
    assert cut(data) == [
        (
            5,
            Transfer(
                handle=300,
                delivery_id=(first + index) & 0xFFFFFFFF,
                delivery_tag=b"prefix!!" + token.to_bytes(8, "big"),
                message_format=message_format,
                settled=settled,
            ),
            payload,
        )
        for index, (token, payload, _) in enumerate(messages)
    ]
    assert fields_written(data) == len(Transfer.FIELDS)


@settings(max_examples=50, deadline=None)
@given(st.integers(513, 3000), st.integers(512, 1000), st.booleans())
def test_cut(size: int, frame_bytes_max: int, settled: bool) -> None:
    """A delivery is cut into frames no larger than allowed, all with more but the last, and is whole again together."""
    template = TransferTemplate(0, 1, bytes(8), 0, settled=settled)
    message = bytes(range(256)) * 12
    size = max(size, frame_bytes_max)
    pieces = list(template.cut(9, 8, message[:size], frame_bytes_max))
    frames = cut(b"".join(head + bytes(payload) for head, payload in pieces))
    assert b"".join(payload for _, _, payload in frames) == message[:size]
    assert all(len(head) + len(payload) <= frame_bytes_max for head, payload in pieces)
    transfers = [transfer for _, transfer, _ in frames if isinstance(transfer, Transfer)]
    assert [transfer.more for transfer in transfers] == [True] * (len(frames) - 1) + [False]
    assert [transfer.delivery_id for transfer in transfers] == [9] + [None] * (len(frames) - 1)
    assert {transfer.settled for transfer in transfers} == {settled}
    assert {fields_written(head) for head, _ in pieces} == {len(Transfer.FIELDS)}
