"""Requests about single messages of a queue, and the job of one command: find, then move, page by page.

Rule: a request names at most 1,000 messages. An interrupted job has done whole requests, and the same command goes on.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

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

__all__ = ["MessageMoves", "connected_moves", "held_text"]

_QUEUE_TYPE: Final = "org.ambermq.queue"
_NAMED_MAX: Final = 1000
_READING_SECONDS: Final = 0.005
_NO_COUNTS: Final = ("to", "done", "is_reading")
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
        try:
            with ProgressCounter(verb) as progress:
                for page in _pages(self.find(name, selection)):
                    attributes: dict[str, Any] = {"to": to} if to else {}
                    if edit is not None:
                        attributes["edit"] = edit
                    done = 0
                    while done < len(page):
                        attributes["offsets"] = page[done:]
                        answer = self.request(operation, _QUEUE_TYPE, {"name": name}, attributes)[1]
                        counts.update({key: int(count) for key, count in answer.items() if key not in _NO_COUNTS})
                        progress.show(counts["moved"] + counts["removed"])
                        if answer.get("is_reading"):
                            time.sleep(_READING_SECONDS)
                        done += int(answer.get("done", len(page)))
        except KeyboardInterrupt as error:
            so_far = f"{counts['moved'] + counts['removed']:,} messages were {verb} before; the same command goes on"
            raise ToolError("interrupted", where=name, advice=so_far, code=ExitCode.INTERRUPTED) from error
        return counts

    def attributes_of(self, name: str) -> dict[str, Any]:
        """Return the attributes of a queue. Raises RequestRefused."""
        return self.request("READ", _QUEUE_TYPE, {"name": name})[1]

    def held(self, name: str) -> int:
        """Return how many messages of a queue consumers hold; 0 if the queue has ended."""
        try:
            return int(self.attributes_of(name).get("acquired") or 0)
        except RequestRefused:
            return 0

    def check_target(self, operation: str, name: str, to: str) -> None:
        """Raise RequestRefused if messages of a queue cannot go to another one, also if there are none to go."""
        if to:
            self.request(operation, _QUEUE_TYPE, {"name": name}, {"offsets": [], "to": to})

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
