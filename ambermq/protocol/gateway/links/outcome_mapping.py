"""The mapping between AMQP's delivery states and the engine's outcomes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ambermq.engine.commands import Transaction
from ambermq.engine.effects import PublishDone
from ambermq.engine.entries.outcome import ACCEPTED, REJECTED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.events.json_meta import JSON_FACTOR
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    DeliveryState,
    Error,
    Modified,
    Rejected,
    Released,
    Source,
    TransactionalState,
)
from ambermq.protocol.amqp10.types.decode import LIMITS
from ambermq.protocol.amqp10.types.encode import encode
from ambermq.protocol.amqp10.types.values import Symbol

__all__ = [
    "DEFAULT_OUTCOME",
    "OUTCOMES",
    "STATES",
    "known_outcomes",
    "outcome_bytes_max",
    "outcome_of",
    "rejected_state",
    "state_in",
    "with_outcomes",
]

FinalState = Accepted | Rejected | Released | Modified
"""The outcomes that the broker sends (messaging, 3.4)."""
_RELEASED: Final = Released()
DEFAULT_OUTCOME: Final = _RELEASED
"""The outcome of a delivery that is settled without one, if the source names none."""
OUTCOMES: Final = tuple(Symbol(kind.NAME) for kind in (Accepted, Rejected, Released, Modified))
"""The outcomes that a link has, as symbols (messaging, 3.5.3)."""
STATES: Final[Mapping[OutcomeKind, FinalState]] = {
    OutcomeKind.ACCEPTED: Accepted(),
    OutcomeKind.RELEASED: _RELEASED,
    OutcomeKind.MODIFIED: _RELEASED,
}
"""The delivery states that answer a sender, by the kind of outcome, without a rejection."""


def known_outcomes(outcomes: Sequence[str]) -> tuple[Symbol, ...]:
    """Return those of a source's outcomes that the broker knows; all that it knows if the source names none of them.

    A source without outcomes promises `accepted` alone (messaging, 3.5.3), so the answer names them.
    """
    return tuple(outcome for outcome in OUTCOMES if outcome in outcomes) or OUTCOMES


def with_outcomes(source: Source) -> Source:
    """Return a sender's source as it is answered: with outcomes, if it names none."""
    return source if source.outcomes else replace(source, outcomes=OUTCOMES)


def outcome_of(state: DeliveryState | None, default: DeliveryState | None) -> Outcome | None:
    """Return the outcome of a peer's terminal state, None for any other state.

    A delivery that is settled without a state has the outcome `default`, the source's default-outcome. Without a
    default the message is released.
    """
    match state:
        case Accepted():
            return ACCEPTED
        case Released():
            return RELEASED
        case Rejected():
            return _rejected(state.error)
        case Modified():
            return Outcome(
                OutcomeKind.MODIFIED,
                delivery_failed=bool(state.delivery_failed),
                undeliverable_here=bool(state.undeliverable_here),
                annotations=_encoded(state.message_annotations or {}),
            )
        case None:
            return outcome_of(default, _RELEASED) if default is not None else RELEASED
        case _:
            return None


def _rejected(error: Error | None) -> Outcome:
    if error is None:
        return REJECTED
    return Outcome(OutcomeKind.REJECTED, condition=str(error.condition), description=error.description or "")


def _encoded(annotations: dict[object, object]) -> tuple[tuple[bytes, bytes], ...]:
    pairs: Iterable[tuple[bytes, bytes]] = ((encode(key), encode(value)) for key, value in annotations.items())
    return tuple(sorted(pairs))


def outcome_bytes_max(performative_bytes_max: int) -> int:
    """Return the maximum size of an outcome in the log, in bytes of JSON.

    Annotations are base64, so they grow less than texts, even short ones with their brackets. Array elements without a
    width are written in two bytes each (encode.py, rule 2), which is less than three.
    """
    return JSON_FACTOR * performative_bytes_max + 3 * LIMITS.elements


def state_in(transaction: Transaction | None, outcome: FinalState) -> FinalState | TransactionalState:
    """Return the delivery state of an outcome in a transaction (transactions, 4.5.8); without one the outcome."""
    return outcome if transaction is None else TransactionalState(txn_id=transaction.id, outcome=outcome)


def rejected_state(done: PublishDone) -> Rejected:
    """Return the delivery state that answers the sender of rejected messages."""
    return Rejected(error=Error(condition=Symbol(done.condition), description=done.description))
