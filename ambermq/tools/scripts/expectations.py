"""What the statements with `expect` do: they take what has come, or fail with what came instead.

Rule 1. Messages, outcomes and frames that were expected are taken: no later statement finds them again.
Rule 2. `expect frame` passes over other frames; `expect messages` passes over none.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ambermq.tools.messages.message_preview import one_line
from ambermq.tools.messages.message_text import presented, printed_text
from ambermq.tools.proxy.field_text import performative_text
from ambermq.tools.proxy.frame_stream import FramePart
from ambermq.tools.scripts.grammar import Statement
from ambermq.tools.scripts.patterns import field_of, is_match
from ambermq.tools.scripts.script_client import ScriptClient, ScriptLink, error_text
from ambermq.tools.scripts.script_run import ScriptRun, StatementFailed

__all__ = ["EXPECTATIONS"]

_SHOWN: Final = 10
_FIELDS: Final = ("delivery_count", "id", "subject")
"""The fields of a message that an option may expect; the delivery-count of a first delivery is 0."""


def _messages(run: ScriptRun, statement: Statement) -> None:
    client, link = run.link(statement)
    count, any_order = _count(run, statement), _is_any_order(run, statement)
    bodies = statement.words[2:] or ("*",)
    wanted = [
        (run.text(body, n=number + 1), number + 1)
        for number, body in enumerate(body for _ in range(count) for body in bodies)
    ]
    while wanted:
        number, payload = run.wait(
            statement,
            f"{len(wanted)} more messages, the next {wanted[0][0]!r}",
            lambda: _next_message(client, link),
            lambda: _why_nothing(client, link),
        )
        fitting = wanted if any_order else wanted[:1]
        found = next((one for one in fitting if _fits(run, statement, one, payload)), None)
        if found is None:
            shown = presented(payload)
            raise StatementFailed(
                f"another message came on link {link.name}",
                expected=_wanted_text(run, statement, wanted[0]),
                found=one_line(f"{printed_text(payload)!r} {_field_texts(shown)}"),
            )
        wanted.remove(found)
        link.held.append(number)


def _next_message(client: ScriptClient, link: ScriptLink) -> tuple[int, bytes] | None:
    if link.inbox:
        return link.inbox.popleft()
    if link.is_detached or client.is_closed:
        raise StatementFailed(f"link {link.name} has ended", expected="a message", found=_why_nothing(client, link))
    return None


def _why_nothing(client: ScriptClient, link: ScriptLink) -> str:
    if link.is_detached:
        return f"a detach: {error_text(link.error)}"
    return f"the end of the connection: {error_text(client.error)}" if client.is_closed else "no message"


def _fits(run: ScriptRun, statement: Statement, wanted: tuple[str, int], payload: bytes) -> bool:
    pattern, number = wanted
    shown = _field_texts(presented(payload))
    fields = {name: run.text(statement.options[name], n=number) for name in _FIELDS if name in statement.options}
    return is_match(pattern, printed_text(payload)) and all(is_match(fields[name], shown[name]) for name in fields)


def _field_texts(shown: dict[str, Any]) -> dict[str, str]:
    return {name: str(shown.get(name, 0 if name == "delivery_count" else "")) for name in _FIELDS}


def _wanted_text(run: ScriptRun, statement: Statement, wanted: tuple[str, int]) -> str:
    pattern, number = wanted
    fields = [f"{name}={run.text(statement.options[name], n=number)}" for name in _FIELDS if name in statement.options]
    return " ".join([repr(pattern), *fields])


def _outcome(run: ScriptRun, statement: Statement) -> None:
    client, link = run.link(statement)
    wanted, error = statement.words[2], run.text(statement.options.get("error", "*"))
    count = _count(run, statement)
    for number in range(1, count + 1):
        outcome, condition = run.wait(
            statement,
            f"{wanted} for {count - number + 1} more messages",
            lambda: _next_outcome(client, link),
            lambda: _why_nothing(client, link).replace("no message", "no outcome"),
        )
        if outcome != wanted or not is_match(error, condition):
            raise StatementFailed(
                f"another outcome came on link {link.name}",
                expected=f"{wanted} {error}" if "error" in statement.options else wanted,
                found=f"{outcome} {condition}".strip(),
            )


def _next_outcome(client: ScriptClient, link: ScriptLink) -> tuple[str, str] | None:
    if link.outcomes:
        return link.outcomes.popleft()
    if link.is_detached or client.is_closed:
        raise StatementFailed(f"link {link.name} has ended", expected="an outcome", found=_why_nothing(client, link))
    return None


def _frame(run: ScriptRun, statement: Statement) -> None:
    name, frame_name = statement.words
    client = run.clients.get(name)
    if client is None:
        raise StatementFailed(f"client {name} is not connected", expected=f"`{name} connect` before")
    fields = {key: run.text(value) for key, value in statement.options.items() if key != "within"}
    seen: list[str] = []
    expected = " ".join([frame_name, *(f"{key}={value}" for key, value in fields.items())])
    run.wait(
        statement,
        f"the frame {expected}",
        lambda: _next_frame(client, frame_name, fields, seen),
        lambda: "; ".join(seen[-_SHOWN:]) or "no frame",
    )


def _next_frame(client: ScriptClient, name: str, fields: Mapping[str, str], seen: list[str]) -> FramePart | None:
    """Return the first frame that fits; take the frames before it, and append their texts to `seen`."""
    while client.frames:
        part = client.frames.popleft()
        performative = part.performative
        if performative is None:
            if name == "heartbeat":
                return part
            continue
        if name == performative.TYPE and all(
            (value := field_of(performative, path)) is not None and is_match(pattern, value)
            for path, pattern in fields.items()
        ):
            return part
        seen.append(one_line(performative_text(performative)))
    return None


def _nothing(run: ScriptRun, statement: Statement) -> None:
    client, link = run.link(statement)
    try:
        number, payload = run.wait(statement, "", lambda: link.inbox[0] if link.inbox else None)
    except StatementFailed:
        if link.is_detached or client.is_closed:
            raise StatementFailed(f"link {link.name} has ended", found=_why_nothing(client, link)) from None
        return
    del number
    found = one_line(f"{printed_text(payload)!r} {_field_texts(presented(payload))}")
    raise StatementFailed(f"a message came on link {link.name}", expected="no message", found=found)


def _closed(run: ScriptRun, statement: Statement) -> None:
    name = statement.words[0]
    client = run.clients.get(name)
    if client is None:
        raise StatementFailed(f"client {name} is not connected", expected=f"`{name} connect` before")
    run.wait(statement, "the end of the connection", lambda: True if client.is_closed else None)
    pattern = run.text(statement.options.get("error", "*"))
    condition = "" if client.error is None else str(client.error.condition)
    if not is_match(pattern, condition):
        raise StatementFailed("another error ended the connection", expected=pattern, found=error_text(client.error))


def _count(run: ScriptRun, statement: Statement) -> int:
    return run.number(statement.options.get("count", "1"))


def _is_any_order(run: ScriptRun, statement: Statement) -> bool:
    order = run.text(statement.options.get("order", "given"))
    if order not in ("given", "any"):
        raise ValueError(f"expected order=given or order=any, found {order!r}")
    return order == "any"


EXPECTATIONS: Final[Mapping[str, Callable[[ScriptRun, Statement], None]]] = {
    "expect_messages": _messages,
    "expect_outcome": _outcome,
    "expect_frame": _frame,
    "expect_nothing": _nothing,
    "expect_closed": _closed,
}
"""What each kind of expectation does."""
