"""The outcomes of published messages, and the rest of a run that is not decided yet."""

from ambermq.engine.commands import Publish
from ambermq.engine.effects import AT_CLOSE, NOW, Effect, PublishDone, Unfinished
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.model.publish_options import Unroutable
from ambermq.engine.model.state import Producer

__all__ = ["outcome", "rejected", "take_unfinished", "unroutable"]


def outcome(command: Publish, kind: OutcomeKind, *, after: int) -> PublishDone:
    """Return an outcome that needs no words; `after` is the offset that must be durable first, or NOW or AT_CLOSE."""
    return PublishDone(command.link, command.first_id, len(command.bodies), kind, command.settled, after=after)


def unroutable(command: Publish, producer: Producer) -> PublishDone:
    """Return the outcome of messages that reach no queue."""
    policy = producer.sending.unroutable
    if policy is Unroutable.REJECT:
        return rejected(command, "amqp:not-found", "no queue is attached for it")
    kind = OutcomeKind.ACCEPTED if policy is Unroutable.DISCARD else OutcomeKind.RELEASED
    # An accepted outcome promises the state that it was decided on: the missing attachment must be durable as well.
    return outcome(command, kind, after=NOW if kind is OutcomeKind.RELEASED else AT_CLOSE)


def rejected(command: Publish, condition: str, description: str) -> PublishDone:
    """Return the outcome of messages that are refused, at once."""
    count = len(command.bodies)
    return PublishDone(
        command.link, command.first_id, count, OutcomeKind.REJECTED, command.settled, condition, description, after=NOW
    )


def take_unfinished(effects: list[Effect]) -> int:
    """Remove the effect Unfinished at the end of effects; return how many messages it has, 0 if there is none."""
    if not effects or not isinstance(last := effects[-1], Unfinished):
        return 0
    del effects[-1]
    assert isinstance(last.command, Publish), "it is the rest of a run"
    return len(last.command.bodies)
