"""The states of deliveries as AMQP has them, and the outcomes that the engine logs."""

import pytest

from ambermq.engine.effects import PublishDone
from ambermq.engine.entries.outcome import ACCEPTED, REJECTED, RELEASED, Outcome, OutcomeKind
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    DeliveryState,
    Error,
    Modified,
    Received,
    Rejected,
    Released,
    Source,
)
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.links.outcome_mapping import (
    OUTCOMES,
    outcome_bytes_max,
    outcome_of,
    rejected_state,
    with_outcomes,
)

_ERROR = Error(condition=Symbol("my:error"), description="no")


@pytest.mark.parametrize(
    ("state", "default", "expected"),
    [
        (Accepted(), None, ACCEPTED),
        (Released(), Accepted(), RELEASED),
        (Rejected(), Accepted(), REJECTED),
        (
            Rejected(error=_ERROR),
            None,
            Outcome(OutcomeKind.REJECTED, condition="my:error", description="no"),
        ),
        (
            Rejected(error=Error(condition=Symbol("my:error"))),
            None,
            Outcome(OutcomeKind.REJECTED, condition="my:error"),
        ),
        (Modified(), Accepted(), Outcome(OutcomeKind.MODIFIED)),
        (Modified(delivery_failed=True), None, Outcome(OutcomeKind.MODIFIED, delivery_failed=True)),
        (Modified(undeliverable_here=True), None, Outcome(OutcomeKind.MODIFIED, undeliverable_here=True)),
        (
            Modified(message_annotations={Symbol("x-b"): "2", Symbol("x-a"): "1"}),
            None,
            Outcome(
                OutcomeKind.MODIFIED,
                annotations=((b"\xa3\x03x-a", b"\xa1\x011"), (b"\xa3\x03x-b", b"\xa1\x012")),
            ),
        ),
        (None, None, RELEASED),
        (None, Accepted(), ACCEPTED),
        (None, Modified(delivery_failed=True), Outcome(OutcomeKind.MODIFIED, delivery_failed=True)),
        (Received(section_number=0, section_offset=0), Accepted(), None),
    ],
)
def test_a_terminal_state_is_an_outcome(
    state: DeliveryState | None, default: DeliveryState | None, expected: Outcome | None
) -> None:
    """The default is for a settlement without a state; a state that is not terminal is no outcome."""
    assert outcome_of(state, default) == expected


def test_a_source_without_outcomes_is_answered_with_all() -> None:
    """The outcomes that it names stay as they are."""
    named = Source(address="q", outcomes=(OUTCOMES[0],))
    assert with_outcomes(named) is named
    assert with_outcomes(Source(address="q")) == Source(address="q", outcomes=OUTCOMES)


def test_a_refusal_is_answered_with_its_error() -> None:
    """Condition and description are those of the engine."""
    done = PublishDone(None, 0, 1, OutcomeKind.REJECTED, settled=False, condition="my:error", description="no")
    assert rejected_state(done) == Rejected(error=_ERROR)


def test_an_outcome_may_be_larger_than_its_frame() -> None:
    """JSON writes a control character as six bytes, and base64 has brackets around each pair."""
    size = ConnectionLimits().frame_bytes_max
    assert outcome_bytes_max(size) >= len(('"' + "\\u0001" * size + '"').encode())
    assert outcome_bytes_max(size + 1) > outcome_bytes_max(size)
