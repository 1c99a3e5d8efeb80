"""The story of one message as rows of a table. Pure: a MessageStory in, rows and values out.

Rule: a row is one step on one queue, with its time and the time since the row before. Programs get the same as values.
"""

from collections.abc import Callable
from typing import Any, Final

from ambermq.engine.entries.discard_reason import DiscardReason, MoveReason
from ambermq.engine.entries.outcome import Outcome
from ambermq.engine.events import Discarded, Due, Moved, Scheduled, SetAside, Started
from ambermq.engine.history.id_origins import Link
from ambermq.engine.history.message_route import Passage
from ambermq.engine.history.message_steps import MessagePlace, MessagePlaceState, Step, StepKind
from ambermq.engine.history.message_story import MessageStory, Route
from ambermq.engine.history.timestamps import iso_time
from ambermq.engine.model.condition_text import argument_text
from ambermq.tools.terminal.durations import duration_text

__all__ = ["COLUMNS", "place_lines", "place_values", "story_rows"]

COLUMNS: Final = ("time", "after", "what", "queue", "user", "offset", "detail")
"""The columns of a table of story rows."""


def story_rows(story: MessageStory, *, is_archived: bool = False) -> list[dict[str, Any]]:
    """Return the steps in order: the columns, and `time_us`, `after_us`, `attempt`, `delivery_count`, `by`.

    `is_archived` is whether an archive has the compacted events.
    """
    rows, before = [], None
    for step in story.steps:
        step_rows = _published(story, step) if step.kind is StepKind.PUBLISHED else [_later(story, step)]
        after_us = None if before is None else step.time_us - before
        for row in step_rows:
            rows.append(
                {
                    "time": iso_time(step.time_us),
                    "after": "" if after_us is None else _after_text(after_us),
                    "time_us": step.time_us,
                    "after_us": after_us,
                }
                | row
            )
            after_us = 0
        before = step.time_us
    if not story.is_whole:
        rows.insert(len(_published(story, story.steps[0])), _gap(story, is_archived=is_archived))
    return rows


def _after_text(after_us: int) -> str:
    return f"{'+' if after_us >= 0 else ''}{duration_text(after_us)}"


def place_values(story: MessageStory) -> list[dict[str, Any]]:
    """Return the place of the message on each queue."""
    return [
        {
            "queue": _queue(story, place.queue),
            "state": str(place.state),
            "by": _link_values(story, place.consumer),
            "delivery_count": place.count,
            "deliveries": place.attempts,
            "since": iso_time(place.last.time_us) if place.last else None,
            "how": str(place.last.kind) if place.last else None,
        }
        for place in story.places
    ]


def place_lines(story: MessageStory, now_us: int) -> list[str]:
    """Return the places of the message as text, a line for each queue."""
    if not story.places:
        return ["on no queue: no attachment matched it"]
    return [_place_line(story, place, now_us) for place in story.places]


def _published(story: MessageStory, step: Step) -> list[dict[str, Any]]:
    published, producer = story.published, story.producer
    size, pieces = f"{published.size:,} bytes", len(published.chunks) + 1
    words = f"by {_link_text(story, published.producer)}"
    if not published.producer:
        words = f"an edited copy of the message at offset {story.edited_from or 'that its annotations name'}"
    if producer is not None:
        words += f" for {producer.destination!r}"
    words += f": {size}, {'durable' if published.durable else 'not durable'}"
    words += f", in {pieces} pieces" if pieces > 1 else ""
    rows = [_row(story, step, words)]
    for route in story.routes:
        muxer = story.muxers.get(producer.muxer) if producer else None
        row = _row(story, step, _why(story, route, muxer)) | {"what": "routed", "queue": _queue(story, route.queue)}
        rows.append(row | {"muxer": muxer, "attached": route.attached, "way": _passage_values(route)})
    return rows


def _why(story: MessageStory, route: Route, muxer: str | None) -> str:
    """Return a text with the attachments by which a message reached a queue."""
    if route.passages:
        last = route.passages[-1].attachment.id
        return f"by {', then '.join(map(_passage, route.passages))}, where the queue is attached since offset {last}"
    if not story.published.producer:
        return "by a redrive"
    if story.producer is None:
        return "by a muxer that the history does not name"
    why = f"by {muxer or 'the address that it named'}"
    if route.attached is None:
        return f"{why}, by wiring that the history does not have"
    return f"{why}, where the queue is attached for {story.producer.destination!r} since offset {route.attached}"


def _passage(passage: Passage) -> str:
    argument = argument_text(passage.attachment.argument)
    return f"{passage.muxer} for {argument!r}" if argument else passage.muxer


def _passage_values(route: Route) -> list[dict[str, Any]]:
    return [
        {"muxer": one.muxer, "argument": argument_text(one.attachment.argument), "attached": one.attachment.id}
        for one in route.passages
    ]


def _later(story: MessageStory, step: Step) -> dict[str, Any]:
    return _row(story, step, _WORDS[step.kind](story, step))


def _row(story: MessageStory, step: Step, words: str) -> dict[str, Any]:
    return {
        "what": str(step.kind),
        "queue": _queue(story, step.queue) if step.queue else None,
        "offset": step.offset,
        "words": words,
        "by": _link_values(story, step.link),
        "user": _user(story, step) or None,
        "attempt": step.attempt,
        "delivery_count": step.count,
    }


def _acquired(story: MessageStory, step: Step) -> str:
    again = f", delivery {step.attempt}" if step.attempt > 1 else ""
    failed = f" after {step.count} failed" if step.count else ""
    return f"by {_link_text(story, step.link)}{again}{failed}"


def _settled(story: MessageStory, step: Step) -> str:
    return f"by {_link_text(story, step.link)}{_rest_of(step.outcome)}"


def _returned(story: MessageStory, step: Step) -> str:
    if isinstance(step.event, Started):
        return f"the broker started, epoch {step.event.epoch}: the delivery to {_link_text(story, step.link)} failed"
    return f"{_link_text(story, step.link)} detached before it settled the message"


def _rest_of(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    parts = ["delivery failed"] if outcome.delivery_failed else []
    parts += ["undeliverable here"] if outcome.undeliverable_here else []
    parts += [f"{len(outcome.annotations)} annotations"] if outcome.annotations else []
    parts += [part for part in (outcome.condition, outcome.description) if part]
    return f": {', '.join(parts)}" if parts else ""


def _discarded(_story: MessageStory, step: Step) -> str:
    assert isinstance(step.event, Discarded), "only that event makes such a step"
    if step.event.reason is DiscardReason.CANCELLED:
        return "its scheduled delivery was cancelled"
    if step.event.reason is DiscardReason.EDITED:
        return f"by a redrive with edits: its copy is the message at offset {step.event.copy}"
    return f"by the broker: {step.event.reason.text}"


def _moved(story: MessageStory, step: Step) -> str:
    assert isinstance(step.event, Moved), "only that event makes such a step"
    targets = ", ".join(repr(_queue(story, queue)) for queue in step.event.targets)
    return f"to {targets}{_reason_of(step.event)}"


def _arrived(story: MessageStory, step: Step) -> str:
    assert isinstance(step.event, Moved), "only that event makes such a step"
    return f"from {_queue(story, step.event.source)!r}{_reason_of(step.event)}"


def _reason_of(event: Moved) -> str:
    if event.reason.is_dead_letter:
        return f", as a dead letter: {event.reason.text}"
    return " by a redrive" if event.reason is MoveReason.REDRIVEN else ""


def _set_aside(_story: MessageStory, step: Step) -> str:
    assert isinstance(step.event, SetAside), "only that event makes such a step"
    return f"{step.event.reason.text}: its dead-letter target could not take it"


def _scheduled(story: MessageStory, step: Step) -> str:
    assert isinstance(step.event, Scheduled), "only that event makes such a step"
    return f"for {iso_time(step.event.due_us_of(story.offset))}"


_DUE: Final = "its redelivery delay is over"
_WORDS: Final[dict[StepKind, Callable[[MessageStory, Step], str]]] = {
    StepKind.ACQUIRED: _acquired,
    StepKind.ACCEPTED: _settled,
    StepKind.REJECTED: _settled,
    StepKind.RELEASED: _settled,
    StepKind.MODIFIED: _settled,
    StepKind.RETURNED: _returned,
    StepKind.RESUMED: lambda story, step: f"by {_link_text(story, step.link)}",
    StepKind.PURGED: lambda _story, _step: "with all available messages",
    StepKind.DELETED: lambda _story, _step: "with the queue",
    StepKind.DISCARDED: _discarded,
    StepKind.SET_ASIDE: _set_aside,
    StepKind.MOVED: _moved,
    StepKind.COPIED: _moved,
    StepKind.ARRIVED: _arrived,
    StepKind.SCHEDULED: _scheduled,
    StepKind.DUE: lambda _story, step: _DUE if isinstance(step.event, Due) else "at the tail of the queue",
    StepKind.DUPLICATED: lambda story, step: f"by {_link_text(story, step.link)}: its message-id again, not stored",
    StepKind.DAMAGED: lambda _story, _step: "its bytes are damaged: set aside",
}


def _gap(story: MessageStory, *, is_archived: bool) -> dict[str, Any]:
    words = f"earlier events compacted at {story.horizon}"
    words += " and archived: see `ambermq log query`" if is_archived else ""
    values = {"offset": story.horizon, "horizon": story.horizon, "user": None}
    return {"what": "compacted", "after": "", "words": words, **values}


def _place_line(story: MessageStory, place: MessagePlace, now_us: int) -> str:
    queue, last = _queue(story, place.queue), place.last
    since = f" for {duration_text(now_us - last.time_us)}" if last and now_us >= last.time_us else ""
    counts = ", never delivered" if story.is_whole else ""
    if place.attempts:
        counts = f", {_deliveries(place.attempts)}, {place.count} failed"
    match place.state:
        case MessagePlaceState.AVAILABLE:
            return f"available on {queue!r}{since}{counts}"
        case MessagePlaceState.SCHEDULED:
            return f"scheduled on {queue!r}{since}{counts}"
        case MessagePlaceState.SET_ASIDE:
            return f"set aside on {queue!r}{since}{counts}"
        case MessagePlaceState.ACQUIRED:
            return f"on {queue!r}, acquired by {_link_text(story, place.consumer)}{since}{counts}"
    how = f"{last.kind} at {iso_time(last.time_us)}" if last else f"before offset {story.horizon}"
    age = duration_text(last.time_us - story.published.time_us) if last else ""
    return f"gone from {queue!r}: {how}{f', {age} after it was published' if age else ''}{counts}"


def _deliveries(count: int) -> str:
    return "1 delivery" if count == 1 else f"{count:,} deliveries"


def _queue(story: MessageStory, queue: int) -> str:
    return story.queues.get(queue, f"queue {queue}")


def _link_text(story: MessageStory, link: int) -> str:
    known = story.links.get(link)
    return f"link {link}" if known is None else f"{known.container}/{known.link}"


def _link_values(story: MessageStory, link: int) -> dict[str, Any] | None:
    known: Link | None = story.links.get(link)
    if not link:
        return None
    return {"id": link, "container": known.container, "link": known.link} if known else {"id": link}


def _user(story: MessageStory, step: Step) -> str:
    """Return the user that caused a step: of the event, else of its link; empty if the history does not have it."""
    if isinstance(step.event, Started):
        return ""
    known = story.links.get(step.link)
    return getattr(step.event, "by", "") or ("" if known is None else known.user)
