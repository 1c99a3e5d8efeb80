"""The child that compacts: its token is good for one connection and for nothing but its work, and no other sees it.

A stand-in for the command is started in its place, by the broker itself, and tries what the real one never does.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ambermq.protocol.server.vhosts.services import CompactionActivity
from ambermq.tools.broker.compaction_child import _error_text
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.terminal.errors import ToolError
from tests.tools.conftest import Run

_DEADLINE_S = 60.0
_BROKER = """
import sys
from ambermq.tools.broker import compaction_child
from ambermq.tools.cli import main
spy = sys.argv.pop(1)
compaction_child.child_command = lambda *words: [sys.executable, "-P", spy, *words]
main(prog_name="ambermq")
"""
_SPY = """
import json, os, sys
from pathlib import Path
from ambermq.tools.client.broker_option import log_of_vhost, running_broker
from ambermq.protocol.server.vhosts.services import CompactionActivity
from ambermq.tools.broker.compaction_child import _error_text
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import QueueManagement, SnapshotManagement
from ambermq.tools.client.token_option import read_token
from ambermq.tools.terminal.errors import ToolError

def tried(action):
    try:
        action()
    except ToolError as error:
        return error.message
    return ""

words = sys.argv[1:]
told = {"environment": dict(os.environ), "command": Path("/proc/self/cmdline").read_text(), "words": words}
fd = int(words[words.index("--token-fd") + 1])
told["token"] = token = read_token(fd)
told["fd_again"] = tried(lambda: read_token(fd))
data, vhost = words[words.index("--data") + 1], words[words.index("--vhost") + 1]
url = BrokerUrl.parse(running_broker(log_of_vhost(data, vhost)).url)
told["url"] = url.with_user(None, "")
if not (Path(data) / "idle").exists():
    other = BrokerUrl(url.host, url.port, vhost="side" if vhost == "default" else "default")
    with LinkClient.connect(url, token=token) as client:
        management = SnapshotManagement(client)
        told["snapshots"] = len(list(management.snapshots()))
        told["queues"] = tried(lambda: list(QueueManagement(client).queues()))
        told["second"] = tried(lambda: LinkClient.connect(url, token=token))
        told["receive"] = tried(lambda: client.attach_receiver("q"))
    told["later"] = tried(lambda: LinkClient.connect(url, token=token))
path = Path(data) / "told.json"
path.with_suffix(".part").write_text(json.dumps(told))
path.with_suffix(".part").rename(path)
"""


@contextmanager
def serving(place: Path, *options: str, is_idle: bool = False) -> Iterator[str]:
    """Run a broker that is about to compact, by the stand-in; yields its URL."""
    (place / "spy.py").write_text(_SPY)
    (place / "config.toml").write_text("[compaction]\ninterval_s = 1\ncheck_s = 1\npause_s = 1000\n")
    (place / "data").mkdir()
    if is_idle:
        (place / "data" / "idle").touch()
    words = ("serve", "--data", str(place / "data"), "--port", "0", "--config", str(place / "config.toml"), *options)
    process = subprocess.Popen(
        [sys.executable, "-c", _BROKER, str(place / "spy.py"), *words],
        stdout=subprocess.PIPE,
        stderr=(place / "stderr").open("wb"),
        env=os.environ | {"AMBERMQ_URL": "amqp://nowhere.invalid:1"},
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().decode().split()[1]
    finally:
        process.terminate()
        process.communicate(timeout=60)


def told_by_child(place: Path) -> dict[str, Any]:
    """Wait for what the stand-in has seen."""
    path, deadline = place / "data" / "told.json", time.monotonic() + _DEADLINE_S
    while not path.exists():
        assert time.monotonic() < deadline, (place / "stderr").read_text()
        time.sleep(0.05)
    told: dict[str, Any] = json.loads(path.read_text())
    return told


def has_ipv6() -> bool:
    """Return whether the machine has IPv6 at all."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize(
    "options",
    [
        ("--user", "alice:hidden-word"),
        ("--anonymous",),
        ("--host", "0.0.0.0", "--user", "alice:hidden-word"),
        pytest.param(
            ("--host", "::", "--user", "alice:hidden-word"),
            marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this machine"),
        ),
    ],
    ids=["users", "anonymous", "every-interface", "every-interface-of-ipv6"],
)
def test_the_token_is_good_for_one_connection_and_one_purpose(tmp_path: Path, options: tuple[str, ...]) -> None:
    """With users and without: management of snapshots; no second connection, no queue, and no trace of a secret."""
    with serving(tmp_path, *options):
        told = told_by_child(tmp_path)
    assert told["snapshots"] == 0
    assert "403" in told["queues"]
    assert "amqp:unauthorized-access" in told["receive"]
    for again in ("second", "later"):
        assert "refused AMBERMQ-TOKEN" in told[again]
    seen = json.dumps([told["environment"], told["command"], told["words"]])
    assert len(told["token"]) == 64
    assert told["token"] not in seen
    assert "hidden-word" not in seen
    assert "AMBERMQ_COMPACT_URL" not in seen
    assert "--token-fd" in told["fd_again"]
    assert told["token"] not in (tmp_path / "stderr").read_text()


def test_a_token_ends_with_its_child(tmp_path: Path, run: Run) -> None:
    """A token that was not used lets no connection in once its child has ended."""
    with serving(tmp_path, "--anonymous", is_idle=True) as url:
        token = told_by_child(tmp_path)["token"]
        deadline = time.monotonic() + _DEADLINE_S
        while "compaction finished" not in (tmp_path / "stderr").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        with pytest.raises(ToolError, match="refused AMBERMQ-TOKEN"):
            LinkClient.connect(BrokerUrl.parse(url), token=token)
        assert run("queue", "list", "--url", url).exit_code == 0


@pytest.mark.parametrize(("fd", "found"), [(0, "nothing"), (999, "Bad file descriptor")])
def test_a_descriptor_without_a_token_is_told(tmp_path: Path, fd: int, found: str) -> None:
    """One line and exit code 2, before anything is done."""
    command = [sys.executable, "-m", "ambermq", "log", "compact", "--data", str(tmp_path), "--token-fd", str(fd)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: --token-fd {fd}: the token cannot be read: expected ")
    assert found in done.stderr


def test_the_progress_of_a_child_is_known_while_it_runs() -> None:
    """Whatever else it prints, and however much; nothing of that is kept."""
    activity, code = (
        CompactionActivity(),
        (
            "import sys, time\n"
            "print('x' * 1_000_000); print('progress base 1 4', flush=True)\n"
            "sys.stderr.write('y' * 1_000_000 + 'the end'); sys.stderr.flush()\n"
            "sys.stdin.readline(); print('progress commit 1 1')\n"
        ),
    )

    async def run() -> tuple[str, int, str]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdin=pipe, stdout=pipe, stderr=pipe)
        following = asyncio.create_task(_error_text(process, activity))
        while not activity.stage:  # noqa: ASYNC110 - the broker has no event for it either
            await asyncio.sleep(0.01)
        stage, percent = activity.stage, activity.percent
        assert process.stdin is not None
        process.stdin.write(b"\n")
        return stage, percent, await following

    stage, percent, error_text = asyncio.run(asyncio.wait_for(run(), 30))
    assert (stage, percent) == ("base", 25)
    assert error_text.endswith("the end")
    assert len(error_text) < 100_000
    assert (activity.stage, activity.percent) == ("commit", 100)
