"""Tests of the laws of the campaign of timers, on what the clients may have seen; `make crash` runs the campaign."""

from collections import Counter
from pathlib import Path

import pytest

from tests.crash.endpoints.noting_consumer import Arrival
from tests.crash.queue_campaigns.timers import Timers


def _seen(directory: Path, name: str, arrivals: dict[int, float], *, sent_s: tuple[float, ...]) -> Timers:
    """Return a campaign in which messages were accepted as they were sent, and some of them came."""
    campaign = Timers(directory, seed=1, plant="")
    for number, at_s in enumerate(sent_s):
        campaign.sent[name].take_number()
        campaign.sent[name].sent_s[number] = campaign.sent[name].accepted[number] = at_s
    for number, at_s in arrivals.items():
        campaign.came[name].note(Arrival(number, at_s, 1))
    return campaign


def test_a_scheduled_message_that_comes_early_or_never_is_found(tmp_path: Path) -> None:
    """By the time that it was sent with."""
    campaign = _seen(tmp_path, "later", {0: 12.0, 1: 11.0}, sent_s=(10.0, 10.0, 10.0))
    campaign.due_s.update({0: 12.0, 1: 12.0, 2: 12.0})
    early, lost = campaign.wrong_times()
    assert (early.partition(":")[0], lost.partition(":")[0]) == ("early", "lost")


def test_a_message_that_comes_after_its_end_is_found(tmp_path: Path) -> None:
    """As is one that was accepted and is a dead letter, and one that is neither."""
    campaign = _seen(tmp_path, "short", {0: 10.5, 1: 19.0}, sent_s=(10.0, 10.0, 10.0))
    campaign.ttl_ms.update(dict.fromkeys(range(3), 1000))
    campaign.came["short"].done.add(0)
    found = [fault.partition(":")[0] for fault in campaign.wrong_ends(Counter([0]))]
    assert found == ["expired", "twice", "lost"]


def test_a_second_message_of_an_id_is_found(tmp_path: Path) -> None:
    """And an id of which none came."""
    campaign = _seen(tmp_path, "ids", {0: 1.0, 20: 1.0}, sent_s=(1.0,) * 22)
    found = [fault.partition(":")[0] for fault in campaign.wrong_ids()]
    assert found == ["id", "lost"]


@pytest.mark.parametrize(("second_s", "is_there", "law"), [(11.0, True, "window"), (13.0, False, "lost")])
def test_a_window_that_is_too_short_or_too_long_is_found(
    tmp_path: Path, second_s: float, law: str, *, is_there: bool
) -> None:
    """Two messages have an id; the window is 1.5 s."""
    sent_s = (*[10.0] * 150, second_s)
    came = dict.fromkeys(range(150 + is_there), 10.0)
    (fault,) = _seen(tmp_path, "recent", came, sent_s=sent_s).wrong_recent()
    assert fault.startswith(law)
    other = dict.fromkeys(range(151 - is_there), 10.0)
    assert not _seen(tmp_path, "recent", other, sent_s=sent_s).wrong_recent()


def test_an_old_value_that_comes_is_found(tmp_path: Path) -> None:
    """And a newest one that never comes."""
    came = dict.fromkeys(range(2, 21), 10.0) | {0: 30.0}
    found = [fault.partition(":")[0] for fault in _seen(tmp_path, "keys", came, sent_s=(10.0,) * 22).wrong_keys()]
    assert found == ["replaced", "lost"]
