"""Publishing and matching with many attachments: each class is measured in a separate process with its own memory."""

import json
import subprocess
import sys
from pathlib import Path

from bench.brokers.broker import Broker
from bench.load import LoadFailed, Window
from bench.measures import matching, publishing

__all__ = ["measure_routing"]


def measure_routing(broker: Broker, _window: Window, directory: Path) -> dict[str, float]:
    """Return the figures of all classes, each named by its class; LoadFailed if one fails."""
    broker.kill()
    assert directory.is_dir()
    published = {
        f"publish-{name}-{figure}": value
        for name in publishing.MEASURES
        for figure, value in _measured("bench.measures.publishing", name).items()
    }
    return published | {
        f"{name}-{figure}": value
        for name in matching.MEASURES
        for figure, value in _measured("bench.measures.matching", name).items()
    }


def _measured(module: str, name: str) -> dict[str, float]:
    command = [sys.executable, "-m", module, name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LoadFailed(f"{module} {name} ended with {done.returncode}: {done.stderr[-500:]}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures
