"""Matching with many attachments: each class in a process of its own, so that its memory is nobody else's."""

import json
import subprocess
import sys
from pathlib import Path

from bench.brokers import Broker
from bench.load import LoadFailed, Window
from bench.matching import MEASURES

__all__ = ["measure_routing"]


def measure_routing(broker: Broker, _window: Window, directory: Path) -> dict[str, float]:
    """Return the figures of all classes, each named by its class; LoadFailed where one cannot be measured."""
    broker.kill()
    assert directory.is_dir()
    return {f"{name}-{figure}": value for name in MEASURES for figure, value in _measured(name).items()}


def _measured(name: str) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.matching", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LoadFailed(f"matching {name} ended with {done.returncode}: {done.stderr[-500:]}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures
