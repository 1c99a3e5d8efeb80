"""How the harness starts and ends a broker, with a shell script in the broker's place."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from bench.brokers.ambermq import AmberMQ
from bench.brokers.broker import BrokerFailed


def _install(directory: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> AmberMQ:
    command = directory / "ambermq"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(directory / "python"))
    return AmberMQ(directory / "data")


def _alive(session: int) -> list[int]:
    """Return the processes of a session, without zombies."""
    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def test_the_ready_line_names_the_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The port is the broker's choice, and its line tells it."""
    broker = _install(tmp_path, monkeypatch, 'echo "ready amqp://127.0.0.1:4321 data=$3"; exec sleep 60')
    assert broker.start() > 0
    assert broker.url == "amqp://127.0.0.1:4321"
    assert broker.usage().rss_bytes > 0
    broker.kill()


def test_kill_ends_the_broker_and_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that a broker started outlives it."""
    broker = _install(tmp_path, monkeypatch, 'echo "ready amqp://127.0.0.1:1 data=x"; sleep 60; sleep 60')
    broker.start()
    assert broker._process is not None
    session = broker._process.pid
    assert _alive(session)
    broker.kill()
    deadline = time.monotonic() + 60
    while _alive(session):
        assert time.monotonic() < deadline, _alive(session)
    assert broker.usage() == (0.0, 0)


def test_a_broker_that_ends_early_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report has the reason of a failure."""
    broker = _install(tmp_path, monkeypatch, "echo the disk is on fire >&2; exit 1")
    with pytest.raises(BrokerFailed, match="the disk is on fire"):
        broker.start()
