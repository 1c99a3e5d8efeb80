"""Settlements become ranges, and a range means what the general encoder writes, at full width."""

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.performatives import Accepted, DeliveryState, Disposition, Error, Modified, Rejected, Released
from protocol.serial import MASK
from protocol.settlement import Settlement
from tests.protocol.peers import cut, fields_written

STATES = st.sampled_from(
    (
        None,
        Accepted(),
        Released(),
        Modified(delivery_failed=True, message_annotations={"x": 1}),
        Rejected(error=Error(condition="amqp:not-found", description="x" * 300)),
    )
)
SETTLEMENTS = st.builds(
    Settlement, st.sampled_from((0, 1, 2, MASK)), st.integers(1, 3), STATES, settled=st.booleans(), role=st.booleans()
)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, MASK), st.integers(1, MASK), STATES, st.booleans(), st.booleans())
def test_disposition(first: int, count: int, state: DeliveryState | None, role: bool, settled: bool) -> None:
    """A disposition is written with all its fields, whatever the size of its state."""
    frame = Settlement(first, count, state, settled, role).write(3, MASK)
    last = (first + count - 1) & MASK
    expected = Disposition(role=role, first=first, last=last, settled=settled, state=state)
    assert cut(frame) == [(3, expected, b"")]
    assert fields_written(frame) == len(Disposition.FIELDS)


@settings(max_examples=300, deadline=None)
@given(SETTLEMENTS, SETTLEMENTS)
def test_only_what_follows_and_is_alike_is_one_range(one: Settlement, two: Settlement) -> None:
    """Else neither changes."""
    follows = two.first_id == (one.first_id + one.count) & MASK
    are_alike = (one.state, one.settled, one.role) == (two.state, two.settled, two.role)
    count = one.count
    assert one.extend(two) is (follows and are_alike)
    assert one.count == count + (two.count if follows and are_alike else 0)
