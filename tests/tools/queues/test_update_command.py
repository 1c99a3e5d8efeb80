"""`ambermq queue update --match` on a running broker."""

import json
from typing import Any

import pytest

from ambermq.tools.client.management_client import QueueManagement
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run


def settings_of(on_broker: Run, name: str) -> dict[str, Any]:
    """Return the attributes of a queue."""
    return dict(json.loads(on_broker("queue", "show", name, "--output", "json").stdout))


def cells(text: str) -> list[list[str]]:
    """Return the words of each line."""
    return [line.split() for line in text.splitlines()]


def test_all_queues_of_a_pattern_are_changed(on_broker: Run) -> None:
    """A dry run tells the same and changes nothing; other queues stay; a second run has nothing to do."""
    for name in ("m1.a", "m1.b", "m1.c.d", "m1x"):
        on_broker("queue", "declare", name)
    on_broker("queue", "update", "m1.b", "--bytes-max", "5KiB")
    options = ("queue", "update", "--match", "m1.#", "--bytes-max", "5KiB", "--lock", "1s")
    rows = [["name", "setting", "before", "after"]]
    rows += [["m1.a", "bytes_max", "0", "5,120"], ["m1.a", "lock_ms", "0", "1,000"], ["m1.b", "lock_ms", "0", "1,000"]]
    rows += [["m1.c.d", "bytes_max", "0", "5,120"], ["m1.c.d", "lock_ms", "0", "1,000"]]
    planned = on_broker(*options, "--dry-run")
    assert cells(planned.stdout) == [*rows, ["would", "update", "3", "of", "3", "queues", "that", "match", "m1.#"]]
    assert (planned.exit_code, settings_of(on_broker, "m1.a")["lock_ms"]) == (ExitCode.OK, 0)
    done = on_broker(*options, "--yes")
    assert (done.exit_code, done.stderr) == (ExitCode.OK, "")
    assert cells(done.stdout) == [*rows, ["updated", "3", "of", "3", "queues", "that", "match", "m1.#"]]
    found = [settings_of(on_broker, name) for name in ("m1.a", "m1.b", "m1.c.d", "m1x")]
    assert [(one["bytes_max"], one["lock_ms"]) for one in found] == [(5120, 1000)] * 3 + [(0, 0)]
    assert on_broker(*options, "--yes").stdout == "updated 0 of 3 queues that match m1.#\n"


def test_a_refused_queue_is_named_and_the_others_go_on(on_broker: Run) -> None:
    """The dry run names the same one; programs get all of it as one document. Exits 1."""
    for name, *options in (("m2.a",), ("m2.b", "--last-value", "key"), ("m2.c",)):
        on_broker("queue", "declare", name, *options)
    options = ("queue", "update", "--match", "m2.*", "--dedup-window", "1min")
    planned = on_broker(*options, "--dry-run", "--output", "json")
    assert planned.exit_code == ExitCode.FAILED
    for options_of_people, verb in ((("--dry-run",), "would be"), (("--yes",), "were")):
        on_broker("queue", "update", "m2.a", "--dedup-window", "1s")
        said = on_broker(*options, *options_of_people)
        assert "warning: m2.b: " in said.stderr
        assert "last_value and dedup_window_ms exclude each other" in said.stderr
        assert said.stderr.endswith(f"error: m2.*: 1 of 3 updates {verb} refused\n")
        assert [line[0] for line in cells(said.stdout)[1:3]] == ["m2.a", "m2.c"]
    for name in ("m2.a", "m2.c"):
        on_broker("queue", "update", name, "--dedup-window", "none")
    done = on_broker(*options, "--yes", "--output", "json")
    assert done.exit_code == ExitCode.FAILED
    for said, is_dry in ((planned, True), (done, False)):
        document = json.loads(said.stdout)
        assert (document["dry_run"], document["match"], document["matched"]) == (is_dry, "m2.*", 3)
        assert [one["name"] for one in document["queues"]] == ["m2.a", "m2.b", "m2.c"]
        assert [bool(one["refusal"]) for one in document["queues"]] == [False, True, False]
        assert [one["updated"] for one in document["queues"]] == [not is_dry, False, not is_dry]
        assert document["queues"][0]["changes"] == {"dedup_window_ms": {"before": 0, "after": 60_000}}
    assert settings_of(on_broker, "m2.c")["dedup_window_ms"] == 60_000


def test_more_queues_than_requests_in_flight(on_broker: Run) -> None:
    """Several pages, several refusals: each queue has its own result."""
    for number in range(60):
        on_broker("queue", "declare", f"m3.{number}", *(("--non-destructive",) if number % 10 == 0 else ()))
    done = on_broker("queue", "update", "--match", "m3.*", "--lock", "1s", "--yes", "--output", "json")
    refused = [one["name"] for one in json.loads(done.stdout)["queues"] if one["refusal"]]
    assert refused == [f"m3.{number}" for number in range(0, 60, 10)]


def test_a_lost_connection_tells_what_is_done(on_broker: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same command does the rest."""
    for name in ("m4.a", "m4.b"):
        on_broker("queue", "declare", name)
    whole = QueueManagement.carry_out

    def cut(self: QueueManagement, requests: Any, **options: Any) -> Any:
        yield from whole(self, requests[:1], **options)
        raise ToolError("the connection is lost", code=ExitCode.TIMEOUT)

    options = ("queue", "update", "--match", "m4.*", "--exclusive", "--yes")
    with monkeypatch.context() as patch:
        patch.setattr(QueueManagement, "carry_out", cut)
        broken = on_broker(*options)
    assert broken.exit_code == ExitCode.TIMEOUT
    assert cells(broken.stdout)[1:] == [
        ["m4.a", "exclusive", "no", "yes"],
        ["updated", "1", "of", "2", "queues", "that", "match", "m4.*"],
    ]
    assert cells(on_broker(*options).stdout)[1:] == [
        ["m4.b", "exclusive", "no", "yes"],
        ["updated", "1", "of", "2", "queues", "that", "match", "m4.*"],
    ]


def test_what_is_wanted_is_said_once(on_broker: Run) -> None:
    """A name or a pattern, at least one setting; a pattern without a queue is not found."""
    for options, code in (
        (("--lock", "1s"), ExitCode.USAGE),
        (("m5", "--match", "m5", "--lock", "1s"), ExitCode.USAGE),
        (("--match", "m5"), ExitCode.USAGE),
        (("--match", "m5*", "--lock", "1s"), ExitCode.USAGE),
        (("--match", "m5.nothing", "--lock", "1s"), ExitCode.NOT_FOUND),
        (("m5.nothing", "--lock", "1s", "--dry-run"), ExitCode.NOT_FOUND),
    ):
        said = on_broker("queue", "update", *options)
        assert (said.exit_code, said.stdout) == (code, ""), options
        assert said.stderr.startswith("error: ")


def test_a_dry_run_of_one_queue(on_broker: Run) -> None:
    """Its settings stay."""
    on_broker("queue", "declare", "m6")
    said = on_broker("queue", "update", "m6", "--lock", "1s", "--dry-run").stdout
    assert cells(said)[1] == ["m6", "lock_ms", "0", "1,000"]
    assert settings_of(on_broker, "m6")["lock_ms"] == 0
