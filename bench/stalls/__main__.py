"""`python -m bench.stalls`: the longest turn of the event loop during each request that can be made.

One broker with the probe (turn_probe.py). The queue `held` has a backlog, and a sender and a receiver move 1,000
messages a second on another queue all the time. One request after the other is made; each row of the table has the
longest time between two turns of the loop until its answer, and the time that the request took.

With --runs the whole is repeated with a new broker each time, and a last table has the longest CPU time and the median
of the wall times of each row: the bar is 20 ms for both. With --trace the parts of the long turns go into a file.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from ambermq.protocol.amqp10.performatives.classes import Accepted, DeliveryState, Modified, Rejected, Released
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Request, RequestRefused, SnapshotManagement
from ambermq.tools.terminal.child_command import child_command
from ambermq.tools.terminal.errors import ToolError
from bench.brokers.ambermq import AmberMQ
from bench.load import Load, fill_queue, start_load
from bench.stalls.crowd_peer import CrowdPeer
from bench.stalls.turn_probe import Stall, StallFile

__all__ = ["Row", "measure_stalls"]

_BAR_MS: Final = 20.0
_BODY_BYTES: Final = 100
_HELD: Final = "held"
_DELETED: Final = "deleted"
_TIMEOUT_S: Final = 900.0
_COMMAND_SECONDS: Final = 900.0
"""A copy reads the whole backlog."""
_SCAN_SECONDS: Final = 5.0
"""How long a scan is watched; one of the whole backlog takes minutes."""
_KINDS: Final = ("queue", "muxer", "attachment", "subscription", "template", "snapshot", "vhost")
_SELECTOR_BYTES: Final = 4096
_FILL_COUNT: Final = 500_000
_HEAD: Final = f"{'request':36} {'CPU ms':>8} {'wall ms':>8} {'GC ms':>7} {'s':>7}"


_OUTCOMES: Final[tuple[tuple[str, DeliveryState], ...]] = (
    ("modified", Modified(delivery_failed=True)),
    ("rejected", Rejected()),
    ("accepted", Accepted()),
)


class Row(NamedTuple):
    """One request, the longest turn of the loop beside it, and the seconds that it took."""

    name: str
    stall: Stall
    seconds: float
    error: str = ""


class _Stage:
    """A broker with a backlog, and what the requests need of it."""

    def __init__(self, broker: AmberMQ, directory: Path, *, backlog: int) -> None:
        self.broker = broker
        self.directory = directory
        self.backlog = backlog
        self._names = itertools.count()

    @property
    def management(self) -> SnapshotManagement:
        """Management over a new connection, which is closed with the process: an idle one would end."""
        self._client = LinkClient.connect(BrokerUrl.parse(self.broker.url))
        return SnapshotManagement(self._client)

    def peer(self) -> CrowdPeer:
        """Return a new connection."""
        return CrowdPeer(self.broker.url, f"peer-{next(self._names)}")

    def ask(self, operation: str, kind: str, name: str = "", body: dict[str, Any] | None = None) -> None:
        """Make one request of management."""
        properties = {"name": name} if name else {}
        self.management.request(operation, f"org.ambermq.{kind}", properties, body, timeout_s=_TIMEOUT_S)

    def ask_node(self, operation: str, name: str = "") -> None:
        """Make one request about the node itself, or about a route."""
        self.management.request(operation, "org.amqp.management", {"name": name} if name else {}, {})

    def page(self, kind: str) -> list[list[Any]]:
        """Request the first page of a type, and return its rows."""
        properties = {"entityType": f"org.ambermq.{kind}", "offset": 0, "count": 1000}
        _, body = self.management.request("QUERY", f"org.ambermq.{kind}", properties, timeout_s=_TIMEOUT_S)
        return list(body["results"])

    def read_first(self, kind: str) -> None:
        """Read the first object of a type."""
        self.ask("READ", kind, str(self.page(kind)[0][0]))

    def reset_with_links(self, links: int) -> None:
        """Reset a virtual host that has links and messages."""
        with CrowdPeer(f"{self.broker.url}/vhost:copied", "reset") as peer:
            peer.receivers("crowd", links, credit=1)
            self.ask("RESET", "vhost", "copied")

    def run(self, *words: str) -> None:
        """Run a command beside the broker. Raises ToolError."""
        # Without the limit on reads: the broker is busy all the time, and a copy would take hours.
        urls = os.environ | {"AMBERMQ_DATA": str(self.broker.data), "AMBERMQ_READ_RATE": "0"}
        command = child_command(*words)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env=urls, timeout=_COMMAND_SECONDS
            )
        except subprocess.TimeoutExpired as late:
            raise TimeoutError(f"ended after {_COMMAND_SECONDS:g} s") from late
        if done.returncode:
            raise ToolError(done.stderr.strip() or "failed", where=" ".join(words))


Step = tuple[str, Callable[[], object]]


def _questions(stage: _Stage) -> Iterator[Step]:
    """Yield the requests that change nothing."""
    yield "nothing but the pinger", lambda: time.sleep(3)
    for kind in _KINDS:
        yield f"QUERY {kind}", partial(stage.page, kind)
    yield "READ queue", lambda: stage.ask("READ", "queue", _HELD)
    yield "READ muxer", lambda: stage.ask("READ", "muxer", "QUEUE")
    yield "READ subscription", partial(stage.read_first, "subscription")
    yield "READ template", lambda: stage.ask("READ", "template", "normal")
    yield "READ vhost", lambda: stage.ask("READ", "vhost", "default")
    yield "READ broker", lambda: stage.ask("READ", "broker", "broker")
    for operation in ("GET-TYPES", "GET-ATTRIBUTES", "GET-OPERATIONS", "GET-LIMITS"):
        yield operation, partial(stage.ask_node, operation)
    yield "ROUTE", partial(stage.ask_node, "ROUTE", _HELD)


def _changes(stage: _Stage) -> Iterator[Step]:
    """Yield the requests that change a queue, a snapshot or the wiring, of no great size."""
    yield "CREATE queue", lambda: stage.ask("CREATE", "queue", "new")
    yield "UPDATE queue", lambda: stage.ask("UPDATE", "queue", _HELD, {"messages_max": 90_000_000})
    yield "CREATE muxer", lambda: stage.ask("CREATE", "muxer", "m", {"class": "simple"})
    yield "DELETE muxer", lambda: stage.ask("DELETE", "muxer", "m")
    yield "CREATE snapshot", lambda: stage.management.create("one")
    yield "READ snapshot", lambda: stage.ask("READ", "snapshot", "one")
    yield "CREATE snapshot, seal", lambda: stage.management.create("two", seals=True)
    yield "snapshot diff", lambda: stage.run("snapshot", "diff", "one", "two")
    yield "queue browse --at", lambda: stage.run("queue", "browse", _HELD, "--at", "now")
    yield "DELETE snapshot", lambda: stage.management.delete("one")


def _links(stage: _Stage) -> Iterator[Step]:
    """Yield what links do on the backlog."""
    peer = stage.peer()
    # The rows that reject and accept leave half of it.
    count = min(60_000, stage.backlog // 4)

    def receive(peer: CrowdPeer, number: int, **terms: Any) -> list[Any]:
        # The first messages may come with the answer to the attach.
        total = peer.received_count + number
        links = peer.receivers(_HELD, credit=number, **terms)
        peer.collect(total, is_required=True)
        return links

    def select(peer: CrowdPeer, selector: str) -> None:
        peer.receivers(_HELD, credit=10, selector=selector)
        time.sleep(_SCAN_SECONDS)

    def browse() -> None:
        with stage.peer() as browser:
            receive(browser, 10_000, mode="copy")

    def past() -> None:
        with stage.peer() as browser:
            browser.receivers(_HELD, credit=1000, mode="copy", at_ms=int(time.time() * 1000))
            browser.collect(1000, is_required=True)

    yield "copy browse from the head", browse
    yield "ambermq:at", past
    yield "receive 60,000", lambda: receive(peer, count)
    yield "release 60,000", lambda: peer.settle(Released())
    for name, state in _OUTCOMES:
        yield f"receive 60,000, to be {name}", partial(receive, peer, count)
        yield f"{name} 60,000", partial(peer.settle, state)
    yield "receive 60,000 again", lambda: receive(peer, count)
    yield "connection with 60,000 lost", peer.__exit__
    excluding = stage.peer()
    links: list[Any] = []
    yield "receive 40,000 returned", lambda: links.extend(receive(excluding, min(40_000, count)))
    yield "modify one, undeliverable here", lambda: _exclude(excluding)
    yield "release the others", lambda: excluding.settle(Released())
    yield "receive beside an exclusion", lambda: receive(excluding, 1000)
    yield "detach", lambda: excluding.detach(links)
    selecting, taking = stage.peer(), stage.peer()
    yield "selector that matches nothing", lambda: select(selecting, "never = 1")
    yield "1,000 taken beside the selector", lambda: receive(taking, 1000)
    pattern = "%" + "a" * 2000 + "b%"
    yield "LIKE with 2,000 letters", lambda: select(selecting, f"p LIKE '{pattern}'")
    yield "selecting connection lost", selecting.__exit__
    taking.__exit__()


def _exclude(peer: CrowdPeer) -> None:
    if not peer.received:
        raise TimeoutError("no message was received")
    run = peer.received.pop(0)
    run.link.session.settle(run.first_id, 1, Modified(undeliverable_here=True))
    if len(run.payloads) > 1:
        run.link.session.settle(run.first_id + 1, len(run.payloads) - 1, Released())
    peer.collect(peer.received_count)


def _crowds(stage: _Stage, links: int, queues: int) -> Iterator[Step]:
    """Yield very many links and queues at once."""
    one = stage.peer()
    receivers: list[Any] = []
    senders: list[Any] = []
    yield "attach 4,096 receivers", lambda: receivers.extend(one.receivers("crowd", links))
    yield "detach 4,096 receivers", lambda: one.detach(receivers)
    lost = stage.peer()
    yield "attach 4,096 receivers again", lambda: lost.receivers("crowd", links)
    yield "READ queue with 4,096 receivers", lambda: stage.ask("READ", "queue", "crowd")
    yield "connection with 4,096 links lost", lost.__exit__
    deleted = stage.peer()
    yield "attach 4,096 receivers to delete", lambda: deleted.receivers("crowd", links)
    yield "DELETE queue with 4,096 receivers", lambda: stage.ask("DELETE", "queue", "crowd")
    deleted.__exit__()
    two = stage.peer()
    yield "attach 3,000 senders, new queues", lambda: senders.extend(two.senders(f"n{i}" for i in range(queues)))
    three = stage.peer()
    yield "attach 3,000 more", lambda: three.senders(f"m{i}" for i in range(queues))
    yield "connection with 3,000 senders lost", two.__exit__
    yield "other connection lost", three.__exit__
    yield "QUERY of 6,000 queues", lambda: stage.page("queue")
    one.__exit__()


def _wirings(stage: _Stage, attachments: int) -> Iterator[Step]:
    """Yield the life of a muxer with very many attachments."""
    stage.ask("CREATE", "muxer", "wide", {"class": "destination"})

    def wire() -> None:
        requests = (
            Request("CREATE", "org.ambermq.attachment", {}, {"muxer": "wide", "member": "held", "destination": f"d{i}"})
            for i in range(attachments)
        )
        for refusal in stage.management.carry_out(list(requests)):
            if refusal is not None:
                raise refusal

    yield "CREATE attachments", wire
    yield "QUERY attachment", lambda: stage.page("attachment")
    yield "QUERY attachment again", lambda: stage.page("attachment")
    yield "READ attachment", lambda: stage.read_first("attachment")
    yield "DELETE muxer with attachments", lambda: stage.ask("DELETE", "muxer", "wide")


def _selectors(stage: _Stage) -> Iterator[Step]:
    """Yield attaches with long selectors. The longest ones are refused: they have too many tokens."""
    peer = stage.peer()
    for name, selector in (
        ("600 tokens", " OR ".join(["a=1"] * 150)),
        ("300 signs", "+".join(["a"] * 299) + "=1"),
        ("4 KiB of comparisons", " OR ".join(["a=1"] * (_SELECTOR_BYTES // 8))),
        ("4 KiB of signs", "+".join(["a"] * (_SELECTOR_BYTES // 2 - 2)) + "=1"),
        ("4 KiB of text", f"a = '{'x' * (_SELECTOR_BYTES - 16)}'"),
    ):
        yield f"selector, {name}", partial(peer.receivers, _HELD, selector=selector)
    several = stage.peer()
    texts = (" OR ".join([f"a{number}=1"] * 150) for number in range(20))
    yield "20 attaches with long selectors", lambda: several.attach_selectors(_HELD, texts)
    peer.__exit__()
    several.__exit__()


def _ends(stage: _Stage) -> Iterator[Step]:
    """Yield the copies, and the ends of the whole backlog."""
    yield "vhost CREATE", lambda: stage.ask("CREATE", "vhost", "empty")
    yield "vhost DELETE, empty", lambda: stage.ask("DELETE", "vhost", "empty")
    yield "vhost copy", lambda: stage.run("vhost", "copy", "default", "copied")
    yield "vhost RESET", lambda: stage.reset_with_links(1000)
    yield "vhost DELETE, reset", lambda: stage.ask("DELETE", "vhost", "copied")
    yield "vhost copy again", lambda: stage.run("vhost", "copy", "default", "again")
    yield "vhost DELETE", lambda: stage.ask("DELETE", "vhost", "again")
    yield "PURGE", lambda: stage.ask("PURGE", "queue", _HELD)
    yield "DELETE queue", lambda: stage.ask("DELETE", "queue", _DELETED)


def measure_stalls(
    directory: Path,
    *,
    backlog: int,
    links: int = 4096,
    queues: int = 3000,
    attachments: int = 100_000,
    trace: Path | None = None,
) -> Iterator[Row]:
    """Yield a row for each request, as soon as it is measured. The parts of long turns are appended to `trace`."""
    file = directory / "stalls"
    stalls = StallFile(file)
    traced = () if trace is None else ("bench.stalls.turn_trace", str(trace), str(_BAR_MS / 2), "-m")
    command = (sys.executable, "-m", *traced, "bench.stalls.turn_probe", str(file))
    broker = AmberMQ(directory / "data", command=command)
    broker.start()
    try:
        for queue in (_HELD, _DELETED):
            # Before the pinger, whose links it would steal by their names.
            # In parts, since a sender has a limit of time.
            for first in range(0, backlog, _FILL_COUNT):
                fill_queue(broker, queue, min(_FILL_COUNT, backlog - first), _BODY_BYTES, directory)
        with start_load(broker, Load(_BODY_BYTES, rate=1000), directory):
            stage = _Stage(broker, directory, backlog=backlog)
            subscriber = stage.peer()
            subscriber.subscribe("news")
            parts = (_questions(stage), _changes(stage), _links(stage))
            crowds = (_selectors(stage), _crowds(stage, links, queues))
            more = (*crowds, _wirings(stage, attachments), _ends(stage))
            for name, step in itertools.chain(*parts, *more):
                yield _measured(name, step, stalls)
    finally:
        with suppress(OSError):
            broker.kill()


def _measured(name: str, step: Callable[[], object], stalls: StallFile) -> Row:
    stalls.reset()
    began, error = time.monotonic(), ""
    try:
        step()
    except (ToolError, RequestRefused, TimeoutError, OSError) as failure:
        error = f"{type(failure).__name__}: {failure}"[:100]
    seconds = time.monotonic() - began
    # The rest of the work, as the end of links, may come after the answer.
    time.sleep(0.3)
    return Row(name, stalls.read(), seconds, error)


def main() -> int:
    """Print the table, one row after the other; return 1 if a turn took longer than the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backlog", type=int, default=5_000_000, help="messages on the queue")
    parser.add_argument("--attachments", type=int, default=100_000, help="attachments of the muxer")
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    parser.add_argument("--runs", type=int, default=1, help="brokers to measure, one after the other")
    parser.add_argument("--trace", type=Path, help="a file for the parts of turns longer than 10 ms")
    options = parser.parse_args()
    rows: dict[str, list[Row]] = {}
    for _ in range(options.runs):
        if not options.json:
            print(_HEAD)
        with tempfile.TemporaryDirectory(prefix="ambermq-stalls-", ignore_cleanup_errors=True) as name:
            for row in measure_stalls(
                Path(name), backlog=options.backlog, attachments=options.attachments, trace=options.trace
            ):
                rows.setdefault(row.name, []).append(row)
                print(json.dumps(row._asdict()) if options.json else _line(row), flush=True)
    total = [_total(of_name) for of_name in rows.values()]
    if options.runs > 1:
        print(f"{options.runs} runs: the longest CPU time, the median wall time\n{_HEAD}")
        print("\n".join(json.dumps(row._asdict()) if options.json else _line(row) for row in total))
    return 1 if any(_is_slow(row) for row in total) else 0


def _total(rows: list[Row]) -> Row:
    """Return the row for several runs of a request."""
    stalls = [row.stall for row in rows]
    stall = Stall(
        statistics.median(one.wall_ms for one in stalls),
        max(one.cpu_ms for one in stalls),
        max(one.collection_ms for one in stalls),
    )
    seconds = statistics.median(row.seconds for row in rows)
    return Row(rows[0].name, stall, seconds, next((row.error for row in rows if row.error), ""))


def _is_slow(row: Row) -> bool:
    return row.stall.cpu_ms > _BAR_MS or row.stall.wall_ms > _BAR_MS


def _line(row: Row) -> str:
    stall, mark = row.stall, " *" if _is_slow(row) else ""
    figures = f"{stall.cpu_ms:8.1f} {stall.wall_ms:8.1f} {stall.collection_ms:7.1f} {row.seconds:7.2f}"
    return f"{row.name:36} {figures}{mark}{'  ' + row.error if row.error else ''}"


if __name__ == "__main__":
    sys.exit(main())
