"""`ambermq schedule`, `queue purge --scheduled` and the story of a scheduled message on a running broker."""

import json

from proton import Message, symbol

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.interop.proton_peer import ProtonPeer
from tests.tools.conftest import Run


def schedule(broker: ChildBroker, queue: str, *ids: str, delay_ms: int = 3_600_000) -> None:
    """Send messages for later."""
    peer = ProtonPeer(broker.url, container_id="scheduler")
    try:
        annotations = {symbol("x-opt-delivery-delay"): delay_ms}
        peer.sender(queue).send(*(Message("x", id=one, durable=True, annotations=annotations) for one in ids))
    finally:
        peer.blocking.close()


def test_scheduled_messages_are_listed_and_cancelled(on_broker: Run, broker: ChildBroker) -> None:
    """By message-id and by offset; one that is not scheduled is told by the exit code."""
    on_broker("queue", "declare", "s1")
    schedule(broker, "s1", "a", "b", "c")
    rows = json.loads(on_broker("schedule", "list", "s1", "--output", "json").stdout)
    assert [(row["message_id"], set(row)) for row in rows] == [
        (one, {"offset", "due", "bytes", "message_id"}) for one in "abc"
    ]
    dry = on_broker("schedule", "cancel", "s1", "--message-id", "a", "--dry-run")
    assert dry.stdout == "would cancel 1 messages of s1\n"
    dry = on_broker("schedule", "cancel", "s1", "--offset", rows[1]["offset"], "--offset", 4711, "--dry-run")
    assert (dry.exit_code, dry.stdout) == (ExitCode.FAILED, "would cancel 1 messages of s1\n")
    done = on_broker("schedule", "cancel", "s1", "--message-id", "a", "--offset", rows[1]["offset"])
    assert (done.exit_code, done.stdout) == (ExitCode.OK, "cancelled 2 messages of s1\n")
    again = on_broker("schedule", "cancel", "s1", "--message-id", "a", "--message-id", "c", "--output", "json")
    assert (again.exit_code, json.loads(again.stdout)) == (ExitCode.FAILED, {"name": "s1", "cancelled": 1, "gone": 1})
    assert "1 of the named messages is not scheduled: no message-id a; `ambermq schedule list s1`" in again.stderr
    assert json.loads(on_broker("schedule", "list", "s1", "--output", "json").stdout) == []
    assert on_broker("schedule", "cancel", "s1").exit_code == ExitCode.USAGE


def test_a_purge_is_for_scheduled_messages_too(on_broker: Run, broker: ChildBroker) -> None:
    """If it says so."""
    on_broker("queue", "declare", "s2")
    schedule(broker, "s2", "a", "b")
    on_broker("send", "s2", "x")
    assert on_broker("queue", "delete", "s2", "--if-empty", "--yes").exit_code == ExitCode.FAILED
    assert on_broker("queue", "purge", "s2", "--yes").stdout == "purged 1 messages from s2\n"
    assert on_broker("queue", "purge", "s2", "--scheduled", "--yes").stdout == "purged 2 messages from s2\n"
    assert on_broker("queue", "delete", "s2", "--if-empty", "--yes").exit_code == ExitCode.OK


def test_the_story_says_when_it_was_scheduled(run: Run, on_broker: Run, broker: ChildBroker) -> None:
    """And when its time came, or that it was cancelled."""
    on_broker("queue", "declare", "s3")
    schedule(broker, "s3", "soon", delay_ms=20)
    schedule(broker, "s3", "never")
    assert on_broker("receive", "s3").stdout == "x\n"
    on_broker("schedule", "cancel", "s3", "--message-id", "never")
    for name, kinds in (
        ("soon", ["published", "routed", "scheduled", "due", "acquired", "accepted"]),
        ("never", ["published", "routed", "scheduled", "discarded"]),
    ):
        story = run("history", "message", name, "--data", broker.directory, "--output", "json")
        (found,) = json.loads(story.stdout)
        assert [row["what"] for row in found["events"]] == kinds
