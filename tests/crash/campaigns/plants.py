"""Campaigns against brokers with planted faults: each must find its fault, and name it by the law that is broken."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from tests.crash.queue_campaigns.holdings import run_holding_campaign
from tests.crash.queue_campaigns.queues import run_queue_campaign
from tests.crash.queue_campaigns.resumptions import run_resumption_campaign
from tests.crash.queue_campaigns.timers import run_timer_campaign

__all__ = ["PLANTED", "run_plants"]

_KILLS: Final = 2
_TIMER_KILLS: Final = 4


class Planted(NamedTuple):
    """A campaign of few kills, and how it names the fault."""

    run: Callable[..., Sequence[str]]
    law: str | tuple[str, ...]


def _of_resumptions(directory: Path, **options: int | str) -> list[str]:
    return run_resumption_campaign(directory, kills=_KILLS, **options).faults  # type: ignore[arg-type]


def _of_holdings(directory: Path, *, kind: str, **options: int | str) -> list[str]:
    return run_holding_campaign(directory, kind, kills=_KILLS, **options).faults  # type: ignore[arg-type]


def _of_timers(directory: Path, **options: int | str) -> list[str]:
    return run_timer_campaign(directory, kills=_TIMER_KILLS, **options).faults  # type: ignore[arg-type]


def _of_queues(directory: Path, *, kind: str, **options: int | str) -> list[str]:
    return run_queue_campaign(directory, kills=1, kinds=(kind,), at_end=True, **options).faults  # type: ignore[arg-type]


PLANTED: Final = {
    "move-halved": Planted(partial(_of_queues, kind="redrives"), "redrives: 0 messages stayed and 0 came"),
    "commit-halved": Planted(partial(_of_queues, kind="transactions"), "transactions: "),
    "last-piece-changed": Planted(partial(_of_queues, kind="cut-through"), "cut-through: a message is not whole"),
    "tags-forgotten": Planted(_of_resumptions, ("tag: ", "twice: ")),
    "deliveries-forgotten": Planted(_of_resumptions, "kept: "),
    "group-shared": Planted(partial(_of_holdings, kind="groups"), "holder: "),
    "lock-short": Planted(partial(_of_holdings, kind="locks"), "holder: "),
    "schedule-forgotten": Planted(_of_timers, "early: "),
    "expiry-forgotten": Planted(_of_timers, "event: "),
    "ids-forgotten": Planted(_of_timers, "id: "),
}
"""The faults of tests/crash/planted.py that these campaigns find."""


def run_plants(directory: Path, *, seed: int, plants: int) -> tuple[str, ...]:
    """Run the first so many of them; return those that were not found."""
    missed = list[str]()
    for plant, planted in list(PLANTED.items())[:plants]:
        place = directory / plant
        place.mkdir()
        found = [fault for fault in planted.run(place, seed=seed, plant=plant) if fault.startswith(planted.law)]
        print(f"planted fault {plant}: {found[0] if found else 'not found'}", flush=True)
        missed += [] if found else [f"plant: {plant} was not found"]
    return tuple(missed)
