"""`ambermq dlq`, `queue move` and `queue copy` on a running broker."""

import json
from collections import Counter
from typing import Any

import pytest

from ambermq.protocol.amqp10.performatives.classes import Transfer
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.dead_letters.commands import _shown
from ambermq.tools.dead_letters.message_moves import MessageMoves
from ambermq.tools.dead_letters.selection import Selection, selection_of
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.protocol.tcp import TcpWire
from tests.tools.conftest import Run


def counts(on_broker: Run, *names: str) -> list[int]:
    """Return how many messages wait on queues."""
    rows = {row["name"]: row for row in json.loads(on_broker("queue", "list", "--output", "json").stdout)}
    return [rows[name]["available"] for name in names]


def test_dead_letters_are_shown_with_why_and_go_back(on_broker: Run) -> None:
    """By reason, source, selector and number; what has no origin is told, and the exit code says so."""
    on_broker("queue", "declare", "d1", "--dead-letter", "dead1")
    on_broker("queue", "declare", "d2", "--dead-letter", "dead1", "--delivery-count-max", 1)
    for name, outcome in (("d1", "rejected"), ("d2", "modified")):
        on_broker("send", name, "x", "--count", 3)
        assert on_broker("receive", name, "--count", 3, "--outcome", outcome).exit_code == ExitCode.OK
    on_broker("send", "dead1", "stranger")
    rows = json.loads(on_broker("dlq", "show", "dead1", "--output", "json").stdout)
    assert Counter(row["source"] for row in rows) == {"d1": 3, "d2": 3, None: 1}
    assert {row["reason"] for row in rows} == {"rejected", "delivery-count", None}
    assert on_broker("dlq", "purge", "dead1", "--source", "d2", "--yes").stdout == "removed 3 messages from dead1\n"
    targets = json.loads(on_broker("dlq", "list", "--output", "json").stdout)
    (target,) = [row for row in targets if row["name"] == "dead1"]
    assert (target["available"], target["undeliverable"], target["sources"]) == (4, 0, "d1, d2")
    dry = on_broker("dlq", "redrive", "dead1", "--reason", "rejected", "--limit", 2, "--dry-run")
    assert dry.stdout == "would redrive 2 messages from dead1: 2 to d1\n"
    done = on_broker("dlq", "redrive", "dead1", "--reason", "rejected", "--limit", 2, "--output", "json")
    assert json.loads(done.stdout)["moved"] == 2
    assert counts(on_broker, "d1", "dead1") == [2, 2]
    left = on_broker("dlq", "redrive", "dead1")
    assert left.exit_code == ExitCode.FAILED
    assert left.stdout == "redrove 1 messages from dead1\n"
    assert "1 came from no queue that exists" in left.stderr
    assert on_broker("dlq", "redrive", "dead1", "--to", "d2").exit_code == ExitCode.OK
    assert counts(on_broker, "d1", "dead1") == [3, 0]


def test_what_a_consumer_holds_stays_and_is_counted(on_broker: Run, broker: ChildBroker) -> None:
    """By redrive, purge and move, and by what they would do."""
    on_broker("queue", "declare", "h1", "--dead-letter", "dead-h")
    on_broker("send", "h1", "x", "--count", 2)
    on_broker("receive", "h1", "--count", 2, "--outcome", "rejected")
    with TcpWire.begun(broker.url) as wire:
        wire.attach("dead-h", role=True)
        wire.flow(handle=0, delivery_count=0, link_credit=1)
        wire.expect(Transfer)
        for arguments, told in (
            (("dlq", "redrive", "dead-h", "--dry-run"), "would redrive 1 messages from dead-h: 1 to h1"),
            (("dlq", "purge", "dead-h", "--dry-run"), "would remove 1 messages from dead-h"),
            (("queue", "move", "dead-h", "h1", "--dry-run"), "would move 1 messages from dead-h to h1"),
            (("queue", "copy", "dead-h", "h1"), "copied 1 messages from dead-h to h1"),
            (("dlq", "redrive", "dead-h"), "redrove 1 messages from dead-h"),
            (("dlq", "purge", "dead-h", "--yes"), "removed 0 messages from dead-h"),
        ):
            assert on_broker(*arguments).stdout == f"{told}; consumers hold 1 more\n"
        done = json.loads(on_broker("dlq", "redrive", "dead-h", "--output", "json").stdout)
        assert (done["moved"], done["acquired"]) == (0, 1)


def test_a_dry_run_says_what_would_stay(on_broker: Run) -> None:
    """Because its queue is full or gone; the exit code is that of the command without it."""
    on_broker("queue", "declare", "f1", "--dead-letter", "dead-f")
    on_broker("queue", "declare", "f2", "--dead-letter", "dead-f")
    for name in ("f1", "f2"):
        on_broker("send", name, "x", "--count", 2)
        on_broker("receive", name, "--count", 2, "--outcome", "rejected")
    on_broker("queue", "update", "f1", "--messages-max", 1)
    on_broker("queue", "delete", "f2", "--yes")
    why = (
        "1 have no room where they came from, 2 came from no queue that exists; make room there, or declare that queue"
    )
    dry = on_broker("dlq", "redrive", "dead-f", "--dry-run")
    assert (dry.exit_code, dry.stdout) == (ExitCode.FAILED, "would redrive 1 messages from dead-f: 1 to f1\n")
    assert f"some messages would stay: {why}" in dry.stderr
    done = on_broker("dlq", "redrive", "dead-f")
    assert (done.exit_code, done.stdout) == (ExitCode.FAILED, "redrove 1 messages from dead-f\n")
    assert f"some messages stay: {why}" in done.stderr
    on_broker("queue", "update", "f1", "--messages-max", "none", "--bytes-max", 100)
    moved = on_broker("queue", "move", "dead-f", "f1", "--dry-run")
    assert (moved.exit_code, moved.stdout) == (ExitCode.FAILED, "would move 1 messages from dead-f to f1\n")
    assert "2 messages would stay: the queue is full" in moved.stderr
    assert on_broker("queue", "move", "dead-f", "f1").stdout == "moved 1 messages from dead-f to f1\n"


def test_a_table_has_the_beginning_of_a_description() -> None:
    """JSON has all of it."""
    row = {"offset": 7, "description": "x" * 1024}
    (short,) = _shown([row], is_short=True)
    (whole,) = _shown([row], is_short=False)
    assert (len(short["description"]), len(whole["description"])) == (80, 1024)


def test_messages_move_and_are_copied(on_broker: Run) -> None:
    """More than one request names; a full queue takes what fits, and the exit code says so."""
    for name in ("m1", "m2"):
        on_broker("queue", "declare", name)
    on_broker("send", "m1", "--count", 2500, "x")
    assert on_broker("queue", "copy", "m1", "m2").stdout == "copied 2,500 messages from m1 to m2\n"
    assert on_broker("queue", "move", "m1", "m2", "--limit", 1200).stdout == "moved 1,200 messages from m1 to m2\n"
    assert counts(on_broker, "m1", "m2") == [1300, 3700]
    on_broker("queue", "update", "m2", "--messages-max", 3800)
    full = on_broker("queue", "move", "m1", "m2")
    assert (full.exit_code, counts(on_broker, "m1", "m2")) == (ExitCode.FAILED, [1200, 3800])
    assert "1,200 messages stay: the queue is full" in full.stderr
    dry = on_broker("queue", "move", "m2", "m1", "--selector", "nothing = 1", "--dry-run")
    assert dry.stdout == "would move 0 messages from m2 to m1\n"


def test_a_dry_run_says_what_the_command_would_do(on_broker: Run) -> None:
    """The messages that go and those that stay, with the exit code of the command; nothing is changed."""
    on_broker("queue", "declare", "t1", "--dead-letter", "dead-t")
    on_broker("send", "t1", "x", "--count", 1500)
    assert on_broker("receive", "t1", "--count", 1500, "--outcome", "rejected").exit_code == ExitCode.OK
    on_broker("send", "dead-t", "stranger")
    on_broker("queue", "update", "t1", "--messages-max", 1200)
    dry = on_broker("dlq", "redrive", "dead-t", "--dry-run")
    assert dry.stdout == "would redrive 1,200 messages from dead-t: 1,200 to t1\n"
    assert "some messages would stay: 300 have no room where they came from, 1 came from no queue" in dry.stderr
    whole = json.loads(on_broker("dlq", "redrive", "dead-t", "--dry-run", "--output", "json").stdout)
    assert (whole["messages"], whole["targets"], whole["no_room"], whole["no_origin"]) == (1200, {"t1": 1200}, 300, 1)
    edited = on_broker("dlq", "redrive", "dead-t", "--set", "a=b", "--limit", 150, "--dry-run")
    assert (edited.exit_code, edited.stdout) == (0, "would redrive 150 messages from dead-t: 150 to t1\n")
    full = on_broker("queue", "move", "dead-t", "t1", "--dry-run")
    assert full.stdout == "would move 1,200 messages from dead-t to t1\n"
    assert "t1: 301 messages would stay: the queue is full" in full.stderr
    assert on_broker("queue", "copy", "dead-t", "t1", "--limit", 5, "--dry-run").exit_code == ExitCode.OK
    assert counts(on_broker, "t1", "dead-t") == [0, 1501]
    done = on_broker("dlq", "redrive", "dead-t")
    assert (done.exit_code, done.stdout) == (dry.exit_code, "redrove 1,200 messages from dead-t\n")


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_a_missing_target_is_told_before_a_message_moves(on_broker: Run, dry_run: tuple[str, ...]) -> None:
    """Also where no message is selected, by a dry run as by the command."""
    on_broker("queue", "declare", "source")
    for command in (("queue", "move", "source"), ("queue", "copy", "source"), ("dlq", "redrive", "source", "--to")):
        done = on_broker(*command, "absent", *dry_run)
        assert (done.exit_code, "no queue 'absent'" in done.stderr) == (ExitCode.NOT_FOUND, True), done.stderr


def test_purging_names_what_it_removes(on_broker: Run) -> None:
    """The others stay."""
    on_broker("queue", "declare", "p1", "--dead-letter", "dead2")
    on_broker("send", "p1", "x", "--count", 2)
    on_broker("receive", "p1", "--count", 2, "--outcome", "rejected")
    on_broker("send", "dead2", "y")
    assert on_broker("dlq", "purge", "dead2", "--source", "p1", "--dry-run").stdout == (
        "would remove 2 messages from dead2\n"
    )
    assert on_broker("dlq", "purge", "dead2", "--source", "p1", "--yes").stdout == "removed 2 messages from dead2\n"
    assert counts(on_broker, "dead2") == [1]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("dlq", "show", "nowhere"), ExitCode.NOT_FOUND, "no queue 'nowhere'"),
        (("dlq", "show", "bad", "--selector", "a ="), ExitCode.FAILED, "the selector 'a ='"),
        (("dlq", "show", "bad", "--since", "17"), ExitCode.USAGE, "--since names an offset"),
        (("dlq", "show", "bad", "--reason", "bored"), ExitCode.USAGE, "'bored' is not one of"),
        (("queue", "move", "bad", "bad"), ExitCode.FAILED, "are there already"),
        (("queue", "move", "bad", "nowhere", "--selector", "no = 1"), ExitCode.NOT_FOUND, "no queue 'nowhere'"),
        (("queue", "copy", "bad", "nowhere", "--dry-run"), ExitCode.NOT_FOUND, "no queue 'nowhere'"),
        (("dlq", "redrive", "bad", "--to", "nowhere", "--dry-run"), ExitCode.NOT_FOUND, "no queue 'nowhere'"),
        (("queue", "declare", "bad3", "--dead-letter", "bad3"), ExitCode.FAILED, "cannot be its own dead-letter queue"),
        (("queue", "move", "empty", "nowhere"), ExitCode.NOT_FOUND, "no queue 'nowhere'"),
        (("dlq", "redrive", "empty", "--to", "/muxers/QUEUE/bad"), ExitCode.NOT_FOUND, "the address of a muxer"),
        (("queue", "declare", "bad2", "--dead-letter", "/muxers/none"), ExitCode.NOT_FOUND, "no muxer 'none'"),
    ],
)
def test_mistakes_are_told_in_one_line(on_broker: Run, arguments: tuple[str, ...], code: ExitCode, words: str) -> None:
    """With an exit code."""
    if arguments[1] != "declare":
        on_broker("queue", "declare", "empty")
        on_broker("queue", "declare", "bad")
        on_broker("send", "bad", "x")
    done = on_broker(*arguments)
    assert (done.exit_code, words in done.stderr) == (code, True), done.stderr


class _Interrupted(MessageMoves):
    """Requests of which the second is interrupted."""

    def __init__(self) -> None:
        self.requests = 0

    def request(self, operation: str, *maps: Any, **_: Any) -> tuple[int, dict[str, Any]]:
        """Answer as a broker; raise KeyboardInterrupt at the second move."""
        if operation == "FIND":
            rows = [{"offset": number} for number in range(1000)]
            return 200, {"messages": rows, "is_end": False, "next": 1000, "end": 5000, "is_reading": False}
        self.requests += bool(maps[-1]["offsets"])
        if self.requests > 1:
            raise KeyboardInterrupt
        return 200, {"moved": 1000, "to": ["r"]}


def test_an_interrupted_job_says_how_far_it_came() -> None:
    """By whole requests."""
    with pytest.raises(ToolError) as caught:
        _Interrupted().carry_out_on("q", "MOVE", Selection(), to="r")
    assert caught.value.exit_code == ExitCode.INTERRUPTED
    assert "1,000 messages were moved before; the same command goes on" in str(caught.value)


def test_a_duration_is_a_time() -> None:
    """Relative to now."""
    assert selection_of(since="1h ago").since_us > 0
    assert selection_of(limit=5).attributes == {}


def test_dead_letters_are_edited_on_the_way(on_broker: Run, run: Run, broker: ChildBroker) -> None:
    """A copy takes the place of each; both stories say so."""
    on_broker("queue", "declare", "e1", "--dead-letter", "dead-e")
    on_broker("send", "e1", "x", "--id", "edited", "--property", "region=nowhere", "--count", 150)
    assert on_broker("receive", "e1", "--count", 150, "--outcome", "rejected").exit_code == ExitCode.OK
    changes = ("--set", "region=eu", "--set", "properties.subject=again", "--set", "header.priority=9")
    done = on_broker("dlq", "redrive", "dead-e", *changes, "--unset", "none", "--output", "json")
    assert (done.exit_code, json.loads(done.stdout)["moved"]) == (ExitCode.OK, 150)
    assert counts(on_broker, "e1", "dead-e") == [150, 0]
    lines = on_broker("receive", "e1", "--count", 150, "--ndjson").stdout.splitlines()
    messages = [json.loads(line) for line in lines]
    assert {(one["priority"], one["subject"], one["properties"]["region"], one["text"]) for one in messages} == {
        (9, "again", "eu", "x")
    }
    assert len({one["id"] for one in messages}) == 150
    story = run("history", "message", "edited-1", "--data", broker.directory).stdout
    assert "by a redrive with edits: its copy is the message at offset" in story
    copy = run("history", "message", messages[0]["id"], "--data", broker.directory).stdout
    assert "an edited copy of the message at offset" in copy


def test_every_redrive_counts(on_broker: Run) -> None:
    """With edits and without, in any order."""
    on_broker("queue", "declare", "e2", "--dead-letter", "dead-e2")
    on_broker("send", "e2", "x")
    counted = []
    for options in ((), ("--set", "a=1"), ("--set", "a=2"), (), ("--set", "a=3")):
        assert on_broker("receive", "e2", "--outcome", "rejected").exit_code == ExitCode.OK
        assert on_broker("dlq", "redrive", "dead-e2", *options).exit_code == ExitCode.OK
        (line,) = on_broker("receive", "e2", "--outcome", "released", "--ndjson").stdout.splitlines()
        counted.append(json.loads(line)["annotations"]["x-opt-redrive-count"])
    assert counted == [{"type": "uint", "value": str(count)} for count in range(1, 6)]


@pytest.mark.parametrize(
    "options",
    [("--set", "region"), ("--set", "=x"), ("--set", "header.ttl=1"), ("--keep-id",), ("--set", "header.durable=no")],
)
def test_an_edit_without_sense_is_a_usage_error(on_broker: Run, options: tuple[str, ...]) -> None:
    """Nothing is asked of the broker."""
    assert on_broker("dlq", "redrive", "dead1", *options).exit_code == ExitCode.USAGE
