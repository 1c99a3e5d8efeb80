"""The life of one message as a person would tell it. Pure: a life in, rows and values out.

Rule: a row is one thing that happened on one queue, with its time and how long after the row before; the same as values
for programs.
"""

from collections.abc import Callable
from typing import Any, Final

from ambermq.engine.events import Started
from ambermq.engine.history.id_origins import Link
from ambermq.engine.history.message_life import MessageLife, Route
from ambermq.engine.history.message_steps import MessagePlace, MessagePlaceState, Step, StepKind
from ambermq.engine.history.route_taken import Passage
from ambermq.engine.history.timestamps import iso_time
from ambermq.engine.model.condition_text import argument_text
from ambermq.engine.model.outcome import Outcome
from ambermq.tools.terminal.durations import duration_text

__all__ = ["COLUMNS", "place_lines", "place_values", "story_rows"]

COLUMNS: Final = ("time", "after", "what", "queue", "offset", "words")
"""Of a table of story rows."""


def story_rows(life: MessageLife, *, is_archived: bool = False) -> list[dict[str, Any]]:
    """Return what happened, in order: the columns, and `time_us`, `after_us`, `attempt`, `delivery_count`, `by`.

    `is_archived` where what was compacted can be found elsewhere.
    """
    rows, before = [], None
    for step in life.steps:
        told = _published(life, step) if step.kind is StepKind.PUBLISHED else [_later(life, step)]
        after_us = None if before is None else step.time_us - before
        for row in told:
            rows.append(
                {
                    "time": iso_time(step.time_us),
                    "after": "" if after_us is None else f"+{duration_text(after_us)}",
                    "time_us": step.time_us,
                    "after_us": after_us,
                }
                | row
            )
            after_us = 0
        before = step.time_us
    if not life.is_whole:
        rows.insert(len(_published(life, life.steps[0])), _gap(life, is_archived=is_archived))
    return rows


def place_values(life: MessageLife) -> list[dict[str, Any]]:
    """Return where the message is, a queue each."""
    return [
        {
            "queue": _queue(life, place.queue),
            "state": str(place.state),
            "by": _link_values(life, place.consumer),
            "delivery_count": place.count,
            "deliveries": place.attempts,
            "since": iso_time(place.last.time_us) if place.last else None,
            "how": str(place.last.kind) if place.last else None,
        }
        for place in life.places
    ]


def place_lines(life: MessageLife, now_us: int) -> list[str]:
    """Return where the message is, in words, a line a queue."""
    if not life.places:
        return ["nowhere: no queue was attached for it"]
    return [_place_line(life, place, now_us) for place in life.places]


def _published(life: MessageLife, step: Step) -> list[dict[str, Any]]:
    published, producer = life.published, life.producer
    size, pieces = f"{published.size:,} bytes", len(published.chunks) + 1
    words = f"by {_named(life, published.producer)}"
    if producer is not None:
        words += f" for {producer.destination!r}"
    words += f": {size}, {'durable' if published.durable else 'not durable'}"
    words += f", in {pieces} pieces" if pieces > 1 else ""
    rows = [_row(life, step, words)]
    for route in life.routes:
        muxer = life.muxers.get(producer.muxer) if producer else None
        row = _row(life, step, _why(life, route, muxer)) | {"what": "routed", "queue": _queue(life, route.queue)}
        rows.append(row | {"muxer": muxer, "attached": route.attached, "way": _way_values(route)})
    return rows


def _why(life: MessageLife, route: Route, muxer: str | None) -> str:
    """Say by which attachments a message came to a queue."""
    if route.way:
        last = route.way[-1].attachment.id
        return f"by {', then '.join(map(_passage, route.way))}, where the queue is attached since offset {last}"
    if life.producer is None:
        return "by a muxer that is not known any more"
    why = f"by {muxer or 'the address that it named'}"
    if route.attached is None:
        return f"{why}, in a wiring that is not known any more"
    return f"{why}, where the queue is attached for {life.producer.destination!r} since offset {route.attached}"


def _passage(passage: Passage) -> str:
    argument = argument_text(passage.attachment.argument)
    return f"{passage.muxer} for {argument!r}" if argument else passage.muxer


def _way_values(route: Route) -> list[dict[str, Any]]:
    return [
        {"muxer": one.muxer, "argument": argument_text(one.attachment.argument), "attached": one.attachment.id}
        for one in route.way
    ]


def _later(life: MessageLife, step: Step) -> dict[str, Any]:
    return _row(life, step, _WORDS[step.kind](life, step))


def _row(life: MessageLife, step: Step, words: str) -> dict[str, Any]:
    return {
        "what": str(step.kind),
        "queue": _queue(life, step.queue) if step.queue else None,
        "offset": step.offset,
        "words": words,
        "by": _link_values(life, step.link),
        "attempt": step.attempt,
        "delivery_count": step.count,
    }


def _acquired(life: MessageLife, step: Step) -> str:
    again = f", delivery {step.attempt}" if step.attempt > 1 else ""
    failed = f" after {step.count} failed" if step.count else ""
    return f"by {_named(life, step.link)}{again}{failed}"


def _settled(life: MessageLife, step: Step) -> str:
    return f"by {_named(life, step.link)}{_rest_of(step.outcome)}"


def _returned(life: MessageLife, step: Step) -> str:
    if isinstance(step.event, Started):
        return f"the broker started, epoch {step.event.epoch}: {_named(life, step.link)} held it no more"
    return f"{_named(life, step.link)} went and had not settled it"


def _rest_of(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    parts = ["delivery failed"] if outcome.delivery_failed else []
    parts += ["undeliverable here"] if outcome.undeliverable_here else []
    parts += [f"{len(outcome.annotations)} annotations"] if outcome.annotations else []
    parts += [part for part in (outcome.condition, outcome.description) if part]
    return f": {', '.join(parts)}" if parts else ""


_WORDS: Final[dict[StepKind, Callable[[MessageLife, Step], str]]] = {
    StepKind.ACQUIRED: _acquired,
    StepKind.ACCEPTED: _settled,
    StepKind.REJECTED: _settled,
    StepKind.RELEASED: _settled,
    StepKind.MODIFIED: _settled,
    StepKind.RETURNED: _returned,
    StepKind.PURGED: lambda _life, _step: "with all that was available",
    StepKind.DELETED: lambda _life, _step: "with the queue",
    StepKind.DAMAGED: lambda _life, _step: "its bytes cannot be read: set aside",
}


def _gap(life: MessageLife, *, is_archived: bool) -> dict[str, Any]:
    words = f"earlier events compacted at {life.horizon}"
    words += " and archived: see `ambermq log query`" if is_archived else ""
    return {"what": "compacted", "after": "", "words": words, "offset": life.horizon, "horizon": life.horizon}


def _place_line(life: MessageLife, place: MessagePlace, now_us: int) -> str:
    queue, last = _queue(life, place.queue), place.last
    since = f" for {duration_text(now_us - last.time_us)}" if last and now_us >= last.time_us else ""
    counts = ", never delivered" if life.is_whole else ""
    if place.attempts:
        counts = f", {_deliveries(place.attempts)}, {place.count} failed"
    match place.state:
        case MessagePlaceState.AVAILABLE:
            return f"available on {queue!r}{since}{counts}"
        case MessagePlaceState.ACQUIRED:
            return f"on {queue!r}, held by {_named(life, place.consumer)}{since}{counts}"
    how = f"{last.kind} at {iso_time(last.time_us)}" if last else f"before offset {life.horizon}"
    lived = duration_text(last.time_us - life.published.time_us) if last else ""
    return f"gone from {queue!r}: {how}{f', {lived} after it was published' if lived else ''}{counts}"


def _deliveries(count: int) -> str:
    return "1 delivery" if count == 1 else f"{count:,} deliveries"


def _queue(life: MessageLife, queue: int) -> str:
    return life.queues.get(queue, f"queue {queue}")


def _named(life: MessageLife, link: int) -> str:
    known = life.links.get(link)
    return f"link {link}" if known is None else f"{known.container}/{known.link}"


def _link_values(life: MessageLife, link: int) -> dict[str, Any] | None:
    known: Link | None = life.links.get(link)
    if not link:
        return None
    return {"id": link, "container": known.container, "link": known.link} if known else {"id": link}
