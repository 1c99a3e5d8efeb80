"""`ambermq script run`: the examples of the pages, each statement, and each failure by file and line."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from click.testing import Result

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.child_command import child_command
from tests.docs.pages import ROOT
from tests.protocol.tcp import deadline
from tests.tools.conftest import Run

EXAMPLES = sorted((ROOT / "docs" / "examples" / "scripts").glob("*.script"))
ATTACHED = """
alice connect container=c
alice attach sender out to {queue}
alice attach receiver in from {queue} credit=10
"""

Script = Callable[..., Result]


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """No test hangs."""
    with deadline():
        yield


@pytest.fixture
def script(run: Run, broker: ChildBroker, tmp_path: Path, request: pytest.FixtureRequest) -> Script:
    """Run a script after ATTACHED, on a queue of its own."""

    def invoke(text: str, *arguments: str) -> Result:
        path = tmp_path / "test.script"
        queue = request.node.name.partition("[")[0] + str(abs(hash(request.node.name)))
        path.write_text(ATTACHED.replace("{queue}", queue) + text)
        return run("script", "run", path, "--url", broker.url, *arguments)

    return invoke


@pytest.mark.parametrize("seed", [1, 4])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_run(run: Run, path: Path, seed: int) -> None:
    """Each choice of the examples is met by one of the seeds."""
    result = run("script", "run", path, "--seed", seed, "--output", "json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["ok"]


def test_messages_outcomes_and_settlements(script: Script) -> None:
    """Messages come in order with their fields, and come back as the outcome says."""
    result = script(
        """
alice send out "m{n}" count=3 id="id-{n}" subject=s
alice expect outcome out accepted count=3
alice expect messages in "m{n}" count=3 id="id-{n}" subject=s delivery_count=0
alice settle in modified failed=true count=1
alice settle in accepted
alice expect message in "m*" delivery_count=1 within=5s
alice settle in rejected
alice expect nothing in within=100ms
alice send out big size=5KiB durable=false
""".replace("5KiB", "5000")
        + "alice expect message in big*\n"
    )
    assert result.exit_code == 0, result.stderr


def test_frames_refusals_and_ends(script: Script) -> None:
    """Frames are expected by name and field; refusals by condition."""
    result = script("""
alice expect frame open offered-capabilities=*
alice expect frame attach role=true target.address=*
alice attach receiver no from /muxers/none refused=amqp:*
alice credit in 20
alice credit in 30 drain=true
alice expect frame flow drain=true
alice detach out
alice expect frame detach closed=true
bob connect
bob attach sender out to elsewhere settled=true
repeat 2
  bob send out "{i}"
end
bob close
alice drop
alice connect
alice close
""")
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alice expect message in a within=50ms", "test.script:5: the wait of 0.05 s is over"),
        ("alice send out a\nalice expect message in b", "test.script:6: another message came on link in: expected 'b'"),
        ("alice send out a\nalice expect outcome out rejected", "expected rejected, found accepted"),
        ("alice expect outcome in accepted within=50ms", "found no outcome"),
        ("alice send out a\nalice expect nothing in", "expected no message, found 'a'"),
        ("alice send in a", "link in is a receiver: expected a sender"),
        ("alice credit out 1", "link out is a sender: expected a receiver"),
        ("alice detach other", "client alice has no link other: found out, in"),
        ("bob close", "client bob is not connected"),
        ("alice settle in accepted count=1", "too few messages are held"),
        ("alice attach receiver no from /muxers/none", "the link no was refused: expected no error, found amqp:"),
        ("alice attach receiver r from q refused=x", "the link r was not refused so: expected x, found no refusal"),
        ("alice expect frame close within=50ms", "expected the frame close, found sasl-mechanisms("),
        ("alice expect frame open nothing=1", "open has no field 'nothing'"),
        ("alice expect closed within=50ms", "expected the end of the connection"),
        ("repeat many\nend", "expected a whole number, found 'many'"),
        ("sleep 5", "expected a duration such as 500ms or 5s, found '5'"),
        ("broker kill", "the script has no broker: expected `broker start` before"),
        ("alice close\nalice send out a", "client alice is not connected: expected a connection"),
        ("alice attach receiver r from q credit=1 second=perhaps", "expected true or false, found 'perhaps'"),
        ("bob connect url=amqp://127.0.0.1:1", "amqp://127.0.0.1:1: cannot connect"),
    ],
)
def test_a_failure_names_file_line_expected_and_found(script: Script, text: str, message: str) -> None:
    """And the seed, with which the run fails again."""
    result = script(text, "--seed", "7")
    assert result.exit_code in (1, 2, 4)
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_seed_decides_each_choice(script: Script) -> None:
    """Equal seeds make equal runs, and both choices are made."""
    text = "repeat 6\n random\n  sleep 1ms\n or\n  sleep 1ms\n  sleep 1ms\n end\nend\n"
    counts = [
        json.loads(script(text, "--seed", str(seed), "--output", "json").stdout)["statements"] for seed in (1, 1, 2, 3)
    ]
    assert counts[0] == counts[1]
    assert len(set(counts)) > 1


def test_several_files_are_all_run(run: Run, tmp_path: Path, broker: ChildBroker) -> None:
    """The command fails if one of them does."""
    good, bad = tmp_path / "good.script", tmp_path / "bad.script"
    good.write_text("a connect\n")
    bad.write_text("a close\n")
    result = run("script", "run", bad, good, "--url", broker.url)
    assert result.exit_code == 1
    assert f"ok {good}" in result.stdout
    assert "1 of 2 scripts failed" in result.stderr
    assert run("script", "run", tmp_path / "none").exit_code == 6
    assert run("script", "run", tmp_path).exit_code == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_broker(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C leaves no mess, and neither does SIGTERM."""
    path = tmp_path / "a.script"
    path.write_text("broker start\nsleep 1min\n")
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(child_command("script", "run", str(path)), env=environment, stderr=subprocess.DEVNULL)
    children: list[psutil.Process] = []
    while not children or not list(tmp_path.glob("ambermq-script-*/data/MANIFEST")):
        time.sleep(0.05)
        children = psutil.Process(process.pid).children()
    time.sleep(0.5)
    process.send_signal(number)
    assert process.wait(30) == 128 + number
    assert psutil.wait_procs(children, 10)[1] == []
    assert list(tmp_path.glob("ambermq-script-*")) == []
