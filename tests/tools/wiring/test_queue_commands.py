"""`ambermq queue` on a running broker."""

import json

import pytest

from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run


def test_a_declared_queue_is_there_until_it_is_deleted(on_broker: Run) -> None:
    """declare, list, show, delete; then it is not found."""
    assert on_broker("queue", "declare", "q1").stdout == "declared q1\n"
    assert "q1" in on_broker("queue", "list").stdout
    assert on_broker("queue", "show", "q1").stdout.splitlines()[0].split() == ["name", "q1"]
    assert on_broker("queue", "delete", "q1").stdout == "deleted q1\n"
    assert on_broker("queue", "show", "q1").exit_code == ExitCode.NOT_FOUND


def test_declaring_twice_is_done_when_alike_and_refused_when_not(on_broker: Run) -> None:
    """The same is the same; another bound is a conflict that the message names."""
    first = on_broker("queue", "declare", "q2", "--messages-max", 5, "--output", "json")
    again = on_broker("queue", "declare", "q2", "--messages-max", 5, "--output", "json")
    assert (json.loads(first.stdout)["created"], json.loads(again.stdout)["created"]) == (True, False)
    other = on_broker("queue", "declare", "q2", "--messages-max", 6)
    assert other.exit_code == ExitCode.FAILED
    assert other.stderr.startswith("error: q2: the broker says 409: ")


def test_a_listing_as_json_has_every_attribute(on_broker: Run) -> None:
    """Numbers are numbers, counts are true."""
    on_broker("queue", "declare", "q3", "--messages-max", 7)
    on_broker("send", "q3", "--size", 10, "--count", 2)
    rows = json.loads(on_broker("queue", "list", "--output", "json").stdout)
    row = next(row for row in rows if row["name"] == "q3")
    assert {"available": 2, "acquired": 0, "consumers": 0, "published": 2, "messages_max": 7}.items() <= row.items()
    shown = json.loads(on_broker("queue", "show", "q3", "--output", "json").stdout)
    # The age of the oldest message grows between the two commands.
    assert shown | {"oldest_age_us": 0} == row | {"oldest_age_us": 0}


def test_a_listing_says_why_nothing_is_delivered(on_broker: Run) -> None:
    """A paused queue and one with scheduled messages are seen; without any there are no such columns."""
    on_broker("queue", "declare", "halted")
    assert "paused" not in on_broker("queue", "list").stdout
    on_broker("queue", "pause", "halted")
    on_broker("send", "halted", "--delay", "1h", "later")
    head, *rows = (line.split() for line in on_broker("queue", "list").stdout.splitlines())
    (row,) = (row for row in rows if row[0] == "halted")
    assert (head[-2:], row[-2:]) == (["scheduled", "paused"], ["1", "yes"])
    on_broker("queue", "delete", "halted", "--yes")


def test_a_duration_that_cannot_be_is_refused(on_broker: Run) -> None:
    """A time that rounds to 0 would switch the setting off without a word."""
    for text in ("0.5ms", "36501d", "10", "-1s"):
        refused = on_broker("queue", "declare", "timed", "--lock", text)
        assert refused.exit_code == ExitCode.USAGE
        assert f"expected a duration such as 10min, from 1ms to 36500 days or none, found {text!r}" in refused.stderr
    assert on_broker("queue", "declare", "timed", "--lock", "36500d", "--expires", "0").exit_code == ExitCode.OK
    on_broker("queue", "delete", "timed", "--yes")


def test_a_queue_takes_more_or_fewer_from_now_on(on_broker: Run) -> None:
    """What it holds stays; 0 is the broker's own bound. Once more is done as well, and said to change nothing."""
    on_broker("queue", "declare", "q6", "--messages-max", 2)
    on_broker("send", "q6", "x", "--count", 2)
    for word in ("updated", "unchanged"):
        assert on_broker("queue", "update", "q6", "--messages-max", 1).stdout == f"{word} q6\n"
    assert "it holds 2 messages" in on_broker("send", "q6", "x").stderr
    told = json.loads(on_broker("queue", "update", "q6", "--messages-max", 0, "--output", "json").stdout)
    assert (told.pop("updated"), told["messages_max"]) == (True, 0)
    again = on_broker("queue", "update", "q6", "--messages-max", 0, "--output", "json")
    assert (again.exit_code, json.loads(again.stdout)) == (ExitCode.OK, told | {"updated": False})
    shown = json.loads(on_broker("queue", "show", "q6", "--output", "json").stdout)
    assert shown.pop("oldest_age_us") is not None
    assert shown == {name: value for name, value in told.items() if name != "oldest_age_us"}
    assert on_broker("send", "q6", "x").exit_code == ExitCode.OK


def test_updating_wants_a_bound(on_broker: Run) -> None:
    """Which is a number from 0."""
    for bound in ((), ("--messages-max", -1), ("--messages-max", "x")):
        refused = on_broker("queue", "update", "q7", *bound)
        assert (refused.exit_code, refused.stdout) == (ExitCode.USAGE, "")
        assert "--messages-max" in refused.stderr


def test_purging_says_how_many(on_broker: Run) -> None:
    """What was available is gone."""
    on_broker("send", "q4", "x", "--count", 3)
    assert on_broker("queue", "purge", "q4").stdout == "purged 3 messages from q4\n"
    assert json.loads(on_broker("queue", "purge", "q4", "--output", "json").stdout) == {"name": "q4", "messages": 0}


def test_deleting_can_be_conditional(on_broker: Run) -> None:
    """--if-empty keeps a queue with messages."""
    on_broker("send", "q5", "x")
    assert on_broker("queue", "delete", "q5", "--if-empty").exit_code == ExitCode.FAILED
    assert json.loads(on_broker("queue", "delete", "q5", "--output", "json").stdout) == {"name": "q5", "deleted": True}


def test_a_queue_that_is_not_there_is_not_found(on_broker: Run) -> None:
    """Exit code 6 and its name, for every command that names one."""
    for command in (("show",), ("delete", "--yes"), ("purge", "--yes"), ("update", "--messages-max", 1)):
        result = on_broker("queue", *command, "missing")
        assert (result.exit_code, result.stdout) == (ExitCode.NOT_FOUND, "")
        assert result.stderr.startswith("error: missing: the broker says 404: ")


def test_more_queues_than_a_page_are_all_listed(on_broker: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The listing pages on until it has the total."""
    from ambermq.tools.client import management_client as management

    monkeypatch.setattr(management, "_PAGE_COUNT", 2)
    for number in range(5):
        on_broker("queue", "declare", f"page-{number}")
    names = [row["name"] for row in json.loads(on_broker("queue", "list", "--output", "json").stdout)]
    assert [name for name in names if name.startswith("page-")] == [f"page-{number}" for number in range(5)]
    assert len(names) == len(set(names))
