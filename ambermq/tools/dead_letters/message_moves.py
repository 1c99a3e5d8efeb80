"""Requests about single messages of a queue, and the job of one command: find, then move, page by page.

Rule: a request names at most 1,000 messages. An interrupted job has done whole requests, and the same command goes on.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ambermq.engine.address import queue_name
from ambermq.engine.errors import Refused
from ambermq.protocol.amqp10.types.values import ULong
from ambermq.tools.client.broker_option import broker_url
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import QueueManagement, RequestRefused
from ambermq.tools.client.near_queues import near_queues
from ambermq.tools.dead_letters.selection import Selection
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.progress_counter import ProgressCounter

__all__ = ["MessageMoves", "connected_moves", "held_text", "queue_at"]

_QUEUE_TYPE: Final = "org.ambermq.queue"
_NAMED_MAX: Final = 1000
_NAME_BYTES_MAX: Final = 1 << 20
"""The broker checks the length of names."""
_READING_SECONDS: Final = 0.005
_NO_COUNTS: Final = ("to", "done", "is_reading", "targets", "taken")
_VERBS: Final = {"MOVE": "moved", "COPY": "copied", "REDRIVE": "redriven", "REMOVE": "removed"}


class MessageMoves(QueueManagement):
    """Requests about the messages of queues."""

    def find(self, name: str, selection: Selection, *, reads: bool = False) -> Iterator[dict[str, Any]]:
        """Yield what the broker knows of each message that waits now and is selected, the oldest first.

        With `reads` also what the messages say, as their message-ids.
        """
        left = selection.limit
        wanted = {**selection.attributes, "read": reads, "after": ULong(0)}
        while left is None or left > 0:
            if left is not None:
                wanted["count"] = ULong(left)
            page = self.request("FIND", _QUEUE_TYPE, {"name": name}, wanted)[1]
            rows = list(page.get("messages", ()))
            if left is not None:
                left -= len(rows)
            yield from rows
            if page.get("is_end", True):
                return
            wanted.setdefault("before", ULong(int(page["end"])))
            wanted["after"] = ULong(int(page["next"]))
            if page.get("is_reading"):
                time.sleep(_READING_SECONDS)

    def carry_out_on(
        self, name: str, operation: str, selection: Selection, *, to: str = "", edit: dict[str, Any] | None = None
    ) -> Counter[str]:
        """Move, copy, redrive or remove the selected messages; return the counts of the answers.

        With `edit` the messages are redriven as edited copies, which takes more than one request for a page.

        Raises ToolError with the count so far if it is interrupted.
        """
        counts: Counter[str] = Counter()
        verb = _VERBS[operation]
        attributes: dict[str, Any] = {"to": to} if to else {}
        if edit is not None:
            attributes["edit"] = edit
        try:
            with ProgressCounter(verb) as progress:
                for answer in self._job(name, operation, selection, attributes):
                    counts.update({key: int(count) for key, count in answer.items() if key not in _NO_COUNTS})
                    progress.show(counts["moved"] + counts["removed"])
        except KeyboardInterrupt as error:
            so_far = f"{counts['moved'] + counts['removed']:,} messages were {verb} before; the same command goes on"
            raise ToolError("interrupted", where=name, advice=so_far, code=ExitCode.INTERRUPTED) from error
        return counts

    def held(self, name: str) -> int:
        """Return how many messages of a queue consumers hold; 0 if the queue has ended."""
        try:
            return int(self.request("READ", _QUEUE_TYPE, {"name": name})[1].get("acquired") or 0)
        except RequestRefused:
            return 0

    def dry_run_on(
        self, name: str, operation: str, selection: Selection, *, to: str = "", edit: dict[str, Any] | None = None
    ) -> tuple[Counter[str], Counter[str]]:
        """Return the counts that `carry_out_on` would return, and how many messages each queue would get.

        The broker decides each request as the real one and changes nothing. `taken` tells it the requests before.
        """
        counts, targets = Counter[str](), Counter[str]()
        attributes: dict[str, Any] = {"dry_run": True} | ({"to": to} if to else {})
        if edit is not None:
            attributes["edit"] = edit
        for answer in self._job(name, operation, selection, attributes):
            counts.update({key: int(count) for key, count in answer.items() if key not in _NO_COUNTS})
            targets.update(answer.get("targets", {}))
            attributes["taken"] = answer.get("taken", attributes.get("taken", b""))
        return counts, targets

    def _job(
        self, name: str, operation: str, selection: Selection, attributes: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """Yield the answers to the requests of a job; a caller may change `attributes` between two.

        A job without a message is one request: the broker checks the queue that the messages would go to.
        """
        count = 0
        for page in _pages(self.find(name, selection)):
            done = 0
            while done < len(page):
                attributes["offsets"] = page[done:]
                yield (answer := self.request(operation, _QUEUE_TYPE, {"name": name}, attributes)[1])
                count += 1
                if answer.get("is_reading"):
                    time.sleep(_READING_SECONDS)
                done += int(answer.get("done", len(page)))
        if not count and "to" in attributes:
            yield self.request(operation, _QUEUE_TYPE, {"name": name}, {**attributes, "offsets": []})[1]

    def cancel(self, name: str, offsets: Sequence[int]) -> Counter[str]:
        """Cancel scheduled messages; return the counts of the answers."""
        counts: Counter[str] = Counter()
        for start in range(0, len(offsets), _NAMED_MAX):
            some = list(map(ULong, offsets[start : start + _NAMED_MAX]))
            answer = self.request("CANCEL", _QUEUE_TYPE, {"name": name}, {"offsets": some})[1]
            counts.update({key: int(count) for key, count in answer.items()})
        return counts


@contextmanager
def connected_moves(url: str | None, data: str | None, name: str = "") -> Iterator[MessageMoves]:
    """Yield the requests about messages; an error about the queue NAME has the nearest names."""
    with LinkClient.connect(BrokerUrl.parse(broker_url(url, data))) as client, near_queues(client, name):
        yield MessageMoves(client)


def queue_at(address: str) -> str:
    """Return the name of the queue that an address names; the address itself for another node."""
    try:
        return queue_name(address, name_bytes_max=_NAME_BYTES_MAX)
    except Refused:
        return address


def held_text(held: int) -> str:
    """Return the end of a sentence about messages that consumers hold: empty for none."""
    return f"; consumers hold {held:,} more" if held else ""


def _pages(rows: Iterator[dict[str, Any]]) -> Iterator[list[ULong]]:
    """Yield the offsets of messages in pages of a request's size."""
    page: list[ULong] = []
    for row in rows:
        page.append(ULong(int(row["offset"])))
        if len(page) == _NAMED_MAX:
            yield page
            page = []
    if page:
        yield page
