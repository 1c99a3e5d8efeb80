"""The life of a broker that leaves a record of every type behind, over TCP, by the command line and by proton.

    history      messages that are finished, some that stay; a compaction that compresses, a retention run
    rehearsal    a virtual host that was reset, and whose log was damaged and repaired
    wiring       muxers of every class, updated, detached, deleted; what they make of messages
    maxima       a queue at its maximum that discards its oldest messages
    dead letters messages that are rejected: moved, redriven, copied, and set aside without their target; others expire
    transactions commits and rollbacks
    uploads      a message that arrives piece by piece, and one that is aborted
    duplicates   message-ids that come again, alone, to two queues and in a commit; messages of other priorities
    delays       scheduled messages, and failed deliveries that wait
    expiries     messages that expire in fifty years, each at a time of its own
    last values  messages that newer ones replace, waiting and held, on a queue for all and on one with priorities
    recovery     links that are suspended, resumed and ended, and a tag that is kept; a message of priority 9
    consumers    every outcome, runs dealt to two consumers, selectors
    topics       subscriptions of every kind, temporary queues
    bare         a virtual host in advanced mode, with a message whose body is damaged
    clock        a step of the clock forward and one back, with messages between them
    load         messages sent and held, and a SIGKILL in the middle

Rule 1. What a record type needs comes after the compaction and the retention run, so that it stays in the log.
Rule 2. Damage is done to files of a stopped broker, one byte each.
Rule 3. Everything that a client of this file sends goes into `sent`: what the log holds is held against it.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from proton import Condition, Delivery, Message, symbol
from proton.reactor import Container, DurableSubscription, Selector

from ambermq.protocol.amqp10.message.message import Data
from ambermq.protocol.amqp10.message.message import Message as OwnMessage
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Detach,
    Disposition,
    Flow,
    Header,
    Properties,
    Source,
    Target,
    Transfer,
)
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management
from ambermq.tools.messages.publisher import Publisher
from ambermq.tools.terminal.errors import ConnectionBroke
from tests.golden.data.damage import damage
from tests.golden.data.messages import addressed, messages_of_every_id, order
from tests.golden.data.observation import command, vhost_path
from tests.golden.data.stories import ATTACHMENTS, MUXERS, RESUMABLE
from tests.interop.proton_options import NO_LOCAL, Capable, Dynamic
from tests.interop.proton_peer import Got, ProtonPeer, Receiving
from tests.interop.proton_transactions import Session, posting, taking
from tests.protocol.peers import FIRST_ID
from tests.protocol.tcp import TcpWire
from tests.stepped_broker import SteppedBroker

__all__ = ["CONFIG", "Life"]

CONFIG: Final = """
[engine]
chunk_bytes = 8192
snapshot_bytes = 0
snapshot_interval_s = 0
[log]
segment_bytes_min = 65536
segment_bytes_max = 131072
batch_bytes_target = 16384
batch_bytes_max = 1048576
ballast_bytes = 65536
"""
"""Small segments and chunks, so that a short life has many of them; no snapshot but those asked for."""


_LOAD_ACCEPTED: Final = 150
_AHEAD_S: Final = 90
_FIFTY_YEARS_MS: Final = 50 * 365 * 86_400_000
_DELETE_ON_NO_LINKS_OR_MESSAGES: Final = 0x2E


class Life:
    """One life of a broker on a directory; `run` ends with its SIGKILL."""

    def __init__(self, place: Path) -> None:
        """`place` is an empty directory for the data directory and what lies beside it."""
        config = place / "config.toml"
        config.write_text(CONFIG)
        self.directory = place / "data"
        self.backup = place / "nightly.backup"
        self.sent: set[str] = set()
        """The SHA-256 of every message that proton or the load has sent."""
        self._broker = SteppedBroker(self.directory, arguments=("--config", str(config)))

    def run(self) -> None:
        """Live all of it; the broker is dead afterwards, whatever happens."""
        try:
            self._broker.start()
            self._history()
            self._restart()
            self._rehearsal()
            self._wiring()
            self._maxima()
            self._dead_letters()
            self._transactions()
            self._uploads()
            self._duplicates()
            self._delays()
            self._expiries()
            self._last_values()
            self._recovery()
            self._consumers()
            self._topics()
            self._export()
            self._bare()
            self._clock()
            self._load()
        finally:
            self._broker.kill()

    def _restart(self, between: Callable[[], None] = lambda: None, *, kills: bool = False) -> None:
        """End the broker, do something to its directory, and start it again: an epoch begins."""
        if kills:
            self._broker.kill()
        else:
            assert self._broker.stop() == 0
        between()
        self._broker.start()

    def _ask(self, *arguments: str | int | Path, vhost: str = "default") -> str:
        """Run a command on the running broker."""
        return command(*arguments, "--data", self.directory, "--vhost", vhost)

    def _connect(self, container_id: str, vhost: str = "") -> ProtonPeer:
        """Connect with proton; who is connected when the broker is killed needs no closing."""
        container = Container()
        container.container_id = container_id
        options: dict[str, Any] = {"virtual_host": f"vhost:{vhost}"} if vhost else {}
        return ProtonPeer(self._broker.url, container=container, **options)

    @contextmanager
    def _peer(self, container_id: str, vhost: str = "") -> Iterator[ProtonPeer]:
        """Connect with proton, and disconnect at the end."""
        peer = self._connect(container_id, vhost)
        yield peer
        peer.blocking.close()

    def _send(self, peer: ProtonPeer, address: str | None, *bodies: Message | str) -> None:
        """Send on a link of its own, and note the bytes that were sent."""
        encoded = [bytes((Message(one, durable=True) if isinstance(one, str) else one).encode()) for one in bodies]
        self.sent.update(sha256(one).hexdigest() for one in encoded)
        sender = peer.sender(address, name=f"to {address} {time.monotonic_ns()}")
        sender.send(*encoded)
        sender.link.close()

    def _history(self) -> None:
        """Send what stays between what goes, then compact with compression, then let whole segments go."""
        for number in range(3):
            self._keep(number)
            self._spend(150)
        self._ask("snapshot", "create", "--name", "early")
        self._compact("--compress")
        self._spend(150)
        self._keep(3)
        self._spend(150)
        self._ask("snapshot", "create", "--name", "before-retention")
        self._spend(20)
        self._compact("--whole-segments")

    def _keep(self, number: int) -> None:
        """Send messages without a receiver: small ones, one for two queues, and a large one."""
        with self._peer("archive") as peer:
            self._send(peer, "kept", *(order(f"kept-{number}-{one}") for one in range(12)))
            self._send(peer, "kept", Message("large " * 5000, durable=True, id=f"large-{number}"))
            if not number:
                self._ask("muxer", "declare", "both", "--class", "simple")
                for queue in ("kept", "copied"):
                    self._ask("queue", "declare", queue)
                    self._ask("attach", queue, "both")
            self._send(peer, "/muxers/both", order(f"both-{number}"))

    def _spend(self, count: int) -> None:
        """Send messages and receive them."""
        self._ask("send", "spent", "--size", 900, "--count", count, "--id", f"spent-{time.monotonic_ns()}")
        self._ask("receive", "spent", "--count", count)

    def _compact(self, how: str) -> None:
        told = self._ask(
            "log", "compact", "--runner", "local", "--keep-history", "0s", "--disk-rate", 0, how, "--output", "json"
        )
        assert json.loads(told)["is_committed"], told

    def _rehearsal(self) -> None:
        """Reset a virtual host, and lose a batch of its log whose messages a snapshot has on their queue."""
        self._ask_root("vhost", "create", "rehearsal")
        self._ask("send", "before", "gone by the reset", "--count", 3, vhost="rehearsal")
        self._ask_root("vhost", "reset", "rehearsal")
        with self._peer("tester", "rehearsal") as peer:
            self._send(peer, "orders", *(order(f"rehearsed-{one}") for one in range(5)))
            self._send(peer, "doomed", *(order(f"doomed-{one}") for one in range(3)))
            self._ask("snapshot", "create", "--name", "rehearsed", vhost="rehearsal")
            self._send(peer, "orders", *(order(f"later-{one}") for one in range(5)))
        self._restart(self._lose_doomed)

    def _lose_doomed(self) -> None:
        path = vhost_path(self.directory, "rehearsal")
        damage(path, b"doomed-1", is_head=True)
        command("log", "repair", "--data", self.directory, "--vhost", "rehearsal")

    def _ask_root(self, *arguments: str) -> None:
        command(*arguments, "--data", self.directory)

    def _wiring(self) -> None:
        """Declare muxers of every class, change them, and send through them."""
        for name, kind in MUXERS.items():
            self._ask("muxer", "declare", name, "--class", *kind)
        for queue, muxer, *argument in ATTACHMENTS:
            if not queue.startswith("muxer:"):
                self._ask("queue", "declare", queue)
            self._ask("attach", queue, muxer, *argument)
        self._ask("queue", "update", "alarms", "--messages-max", 1000)
        self._ask("muxer", "update", "line", "--probability", "0.25")
        self._ask("detach", "news.all", "news", "--pattern", "#")
        self._ask("muxer", "delete", "short-lived")
        self._ask("queue", "declare", "short-lived", "--messages-max", 7)
        self._ask("send", "short-lived", "gone with its queue", "--id", "deleted-1")
        self._ask("queue", "delete", "short-lived")
        self._ask("send", "purged", "gone by a purge", "--count", 4, "--id", "purged")
        self._ask("queue", "purge", "purged")
        self._route()

    def _route(self) -> None:
        with self._peer("desk") as peer:
            self._send(peer, "/muxers/line", *(order(f"drawn-{one}") for one in range(40)))
            self._send(peer, "/muxers/news/sport.football", order("goal"), Message("x" * 40_000, id="large-news"))
            for number, level in enumerate(("low", "high")):
                self._send(peer, "/muxers/news/weather.coast", order(f"weather-{number}", level=level))
            self._send(peer, "/muxers/paths", order("path-1", path="src.a", region="eu"))
            self._send(peer, "/muxers/regions", order("region-1", region="eu", size=3), order("region-2", size=3))
            self._send(peer, None, *(addressed("/queues/letters", f"anonymous-{one}") for one in range(2)))
            self._send(peer, "letters", *messages_of_every_id())

    def _maxima(self) -> None:
        """Fill a queue that discards its oldest messages, and change its settings."""
        self._ask("queue", "declare", "readings", "--messages-max", 3, "--overflow", "drop-head")
        with self._peer("desk") as peer:
            self._send(peer, "readings", order("reading"), *(Message(f"reading {number}") for number in range(4)))
        self._ask("queue", "update", "readings", "--bytes-max", "1KiB")

    def _dead_letters(self) -> None:
        """Reject messages whose queue has a dead-letter target, also without it; send some back, and copy some."""
        self._ask("queue", "declare", "jobs", "--dead-letter", "failed", "--delivery-count-max", 2)
        self._ask("queue", "declare", "repairs")
        with self._peer("desk") as peer:
            self._send(peer, "jobs", *(order(f"job-{one}") for one in range(6)), Message("big " * 5000, id="job-6"))
        self._ask("receive", "jobs", "--count", 7, "--outcome", "rejected")
        self._ask("dlq", "redrive", "failed", "--limit", 3)
        self._ask("queue", "copy", "failed", "repairs", "--limit", 2)
        self._ask("queue", "move", "failed", "repairs", "--limit", 1)
        self._ask("queue", "delete", "failed", "--yes")
        self._ask("receive", "jobs", "--count", 2, "--outcome", "rejected")
        # None of these is left when the directory is opened, whenever that is.
        self._ask("queue", "declare", "fleeting", "--message-ttl", "40ms")
        with self._peer("desk") as peer:
            self._send(peer, "fleeting", order("fleeting-1"), Message("by itself", id="fleeting-2", ttl=0.02))
        time.sleep(0.5)

    def _transactions(self) -> None:
        """Commit messages and an outcome, and roll some back."""
        bodies = [f"entry {number}" for number in range(3)]
        self.sent.update(sha256(bytes(Message(body, durable=True).encode())).hexdigest() for body in bodies)
        steps = [posting(*bodies, commits=True), posting("never", commits=False)]
        assert Session(self._broker.url, "ledger", steps).run() == ["committed", "aborted"]
        assert Session(self._broker.url, "ledger", [taking(commits=True)], takes=1).run() == ["committed"]

    def _uploads(self) -> None:
        """Send a large message piece by piece, and abort another one in the middle."""
        whole = bytes(Message(b"page" * 8000, id="scan-1", durable=True).encode())
        self.sent.add(sha256(whole).hexdigest())
        with LinkClient.connect(BrokerUrl.parse(self._broker.url)) as client:
            link = client.attach_sender("scans")
            publisher = Publisher(client, link)
            for start in range(0, len(whole), 10_000):
                part, is_last = whole[start : start + 10_000], start + 10_000 >= len(whole)
                publisher.offer_piece(part, 0, is_first=not start, is_last=is_last)
            publisher.finish()
            cut = link.begin_parts(1)
            link.send_part(cut, 1, memoryview(whole[:-1]), is_first=True, is_last=False)
            client.flush()
            time.sleep(0.2)
            link.abort_parts(cut)

    def _duplicates(self) -> None:
        """Send some message-ids again, to queues that remember them, and messages that go before others."""
        self._ask("muxer", "declare", "billing", "--class", "simple")
        for queue, window in (("invoices", "1h"), ("copies", "2h"), ("all", "none")):
            self._ask("queue", "declare", queue, "--dedup-window", window)
            self._ask("attach", queue, "billing")
        with self._peer("desk") as peer:
            self._send(peer, "invoices", order("invoice-1"), order("invoice-2"), order("invoice-1"))
            self._send(peer, "/muxers/billing", *(order(f"invoice-{one}") for one in (1, 3, 4, 3)))
            self._send(peer, "/muxers/billing", Message("first", id="invoice-5", priority=9, durable=True))
            self._ask("receive", "invoices", "--count", 2)
            self._send(peer, "invoices", order("invoice-4"), order("invoice-6"))

    def _delays(self) -> None:
        """Schedule messages and delay redeliveries: some are available at once, the others in fifty years."""
        self._ask("queue", "declare", "reminders")
        self._ask("queue", "declare", "retried", "--redelivery-delay", "20ms")
        with self._peer("desk") as peer:
            soon, never = {symbol("x-opt-delivery-delay"): 20}, {symbol("x-opt-delivery-delay"): _FIFTY_YEARS_MS}
            reminders = [Message("in time", id="reminder-1", annotations=soon)]
            reminders += [Message("later", id=f"reminder-{one}", annotations=never) for one in (2, 3)]
            self._send(peer, "reminders", *reminders)
            self._send(peer, "retried", order("retried-1"), order("retried-2"))
        self._ask("schedule", "cancel", "reminders", "--message-id", "reminder-3")
        self._ask("receive", "retried", "--count", 1, "--outcome", "modified")
        time.sleep(0.5)
        self._ask("queue", "update", "retried", "--redelivery-delay", "18000d", "--redelivery-backoff", 2)
        self._ask("receive", "retried", "--count", 1, "--outcome", "modified")

    def _expiries(self) -> None:
        """Send messages that expire at different times, all of them far away."""
        self._ask("queue", "declare", "offers")
        end_s = time.time() + _FIFTY_YEARS_MS / 1000
        with self._peer("desk") as peer:
            offers = [Message(f"offer {one}", id=f"offer-{one}", expiry_time=end_s + one) for one in range(3)]
            self._send(peer, "offers", *offers)

    def _last_values(self) -> None:
        """Replace messages by newer ones with the same key."""
        self._ask("queue", "declare", "quotes", "--last-value", "name", "--non-destructive")
        self._ask("queue", "declare", "values", "--last-value", "properties.subject")
        with self._peer("ticker") as peer:
            quotes = [(name, price) for price in (1, 2) for name in ("gold", "silver")]
            self._send(peer, "quotes", *[Message(price, properties={"name": name}) for name, price in quotes])
            self._send(peer, "values", Message("old", subject="a", priority=7), Message("b", subject="b"))
            peer.receiver("values", name="slow", credit=1).next()
            self._send(peer, "values", Message("new", subject="a", priority=7))

    def _recovery(self) -> None:
        """Suspend a receiver, resume it, and leave it with a message; publish in receiver-settle-mode second."""
        kept: dict[str, Any] = {"address": RESUMABLE, "durable": 2, "expiry_policy": "never"}
        with self._peer("keeper") as peer:
            self._send(peer, RESUMABLE, *(Message(f"kept-{one}", id=f"kept-{one}", durable=True) for one in (1, 2)))
            self._send(peer, RESUMABLE, Message("urgent", id="kept-3", durable=True, priority=9))
        for _ in range(2):
            with TcpWire.begun(self._broker.url, container="keeper") as wire:
                source, unsettled = Source(**kept), None
                for turn in range(2):
                    wire.say(
                        Attach(name="in", handle=0, role=True, source=source, target=Target(), unsettled=unsettled)
                    )
                    wire.expect(Attach)
                    wire.flow(handle=0, delivery_count=0, link_credit=2 - turn)
                    tag = wire.expect(Transfer).delivery_tag
                    unsettled = {tag: None}
                    wire.say(Detach(handle=0, closed=False))
                    wire.expect(Detach)
        body = bytes(Message("once", durable=True).encode())
        self.sent.add(sha256(body).hexdigest())
        with TcpWire.begun(self._broker.url, container="keeper") as wire:
            target = Target(**kept)
            wire.say(
                Attach(name="out", handle=0, role=False, rcv_settle_mode=1, target=target, initial_delivery_count=0)
            )
            wire.expect(Flow)
            transfer = Transfer(handle=0, delivery_id=FIRST_ID, delivery_tag=b"once", message_format=0)
            wire.say(transfer, payload=body)
            wire.expect(Disposition)

    def _consumers(self) -> None:
        """Deal a queue to two consumers and say every outcome, select, and kill the broker while they hold messages."""
        worker = self._connect("worker")
        one, two = (worker.receiver("shared", name=name, credit=6) for name in ("one", "two"))
        # Both have credit when the messages come, so that one record deals them to both.
        _await_heard(worker)
        with self._peer("boss") as boss:
            self._send(boss, "shared", *(order(f"shared-{number}", number=number) for number in range(20)))
            two.wait(6)
            _say_outcomes(one)
            chosen = boss.receiver("shared", name="chosen", options=[Selector("number > 15")], credit=2)
            chosen.next().settle(Delivery.ACCEPTED)
            boss.receiver("shared", name="leaving", credit=1).next()
        _await_heard(worker)
        self._restart(kills=True)

    def _topics(self) -> None:
        """Subscribe in every way, and make temporary queues; a second kill ends those of links."""
        peer = self._connect("reader")
        with self._peer("press") as press:
            peer.receiver("/topics/prices.*", name="mine", options=[DurableSubscription(), Selector("colour = 'red'")])
            peer.receiver("/topics/prices.#", name="deaf", options=[DurableSubscription(), NO_LOCAL])
            peer.receiver("/topics/prices.#", name="team", options=[DurableSubscription(), Capable("shared", "global")])
            peer.receiver("/topics/prices.#", name="volatile")
            spare = peer.receiver("/topics/other", name="unsubscribed", options=[DurableSubscription()])
            spare.close()
            temporary = peer.receiver(None, options=Dynamic(_DELETE_ON_NO_LINKS_OR_MESSAGES))
            self._send(press, temporary.link.remote_source.address, order("temporary-1"))
            self._send(press, "/topics/prices.tea", *(order(f"price-{one}", colour="red") for one in range(3)))
            self._send(peer, "/topics/prices.tea", order("price-of-my-own", colour="blue"))
        self._restart(kills=True)

    def _export(self) -> None:
        with self._peer("desk") as peer:
            self._send(peer, "letters", order("before-the-backup"))
        command("snapshot", "export", "nightly", self.backup, "--take", "--data", self.directory)
        self._ask("receive", "letters", "--count", 2)

    def _bare(self) -> None:
        """Make a virtual host in advanced mode; one of its messages is damaged and found to be so."""
        self._ask_root("vhost", "create", "bare", "--mode", "advanced")
        self._ask("queue", "declare", "only", vhost="bare")
        self._ask("muxer", "declare", "in", "--class", "destination", vhost="bare")
        self._ask("attach", "only", "in", "--destination", "only", vhost="bare")
        for name in ("good", "spoiled", "fine"):
            with self._peer("tester", "bare") as peer:
                self._send(peer, "/muxers/in/only", order(name))
        self._restart(self._spoil)
        self._ask("receive", "only", "--count", 1, vhost="bare")
        self._ask("receive", "only", "--count", 1, vhost="bare")
        with self._peer("tester", "bare") as peer:
            self._send(peer, "/muxers/in/only", *(order(f"bare-{one}") for one in range(4)))

    def _spoil(self) -> None:
        damage(vhost_path(self.directory, "bare"), b"spoiled", is_head=False)

    def _clock(self) -> None:
        """Step the clock twice: the times of events fall along the log."""
        for number, ahead_s in enumerate((_AHEAD_S, 0), 1):
            self._broker.step_to(ahead_s)
            with LinkClient.connect(BrokerUrl.parse(self._broker.url)) as client:
                while Management(client).request("READ", "org.ambermq.broker", {})[1]["clock_steps"] < number:
                    time.sleep(0.05)
            with self._peer("desk") as peer:
                self._send(peer, "letters", order(f"stepped-{number}"))

    def _load(self) -> None:
        """Send to a queue while consumers of two virtual hosts hold messages, and kill the broker in the middle."""
        self._ask("queue", "declare", "load")
        tester, worker = self._connect("tester", "rehearsal"), self._connect("worker")
        tester.receiver("orders", name="holding", credit=4).wait(4)
        taking = worker.receiver("load", name="taking", credit=20)
        try:
            with LinkClient.connect(BrokerUrl.parse(self._broker.url)) as client:
                publisher = Publisher(client, client.attach_sender("load"), window=40, on_outcome=self._kill_late)
                for number in range(_LOAD_ACCEPTED * 4):
                    publisher.offer(self._loaded(number), number)
                    if number == _LOAD_ACCEPTED // 2:
                        _accept(taking.wait(10)[:5])
                        _await_heard(worker)
        except ConnectionBroke:
            return
        raise AssertionError("the broker survived its SIGKILL")

    def _loaded(self, number: int) -> bytes:
        properties = Properties(message_id=f"load-{number}")
        payload = OwnMessage(header=Header(durable=True), properties=properties, body=(Data(b"amber " * 16),)).encode()
        self.sent.add(sha256(payload).hexdigest())
        return payload

    def _kill_late(self, number: int, outcome: str) -> None:
        assert outcome == "accepted"
        if number >= _LOAD_ACCEPTED:
            self._broker.kill()


def _say_outcomes(receiver: Receiving) -> None:
    """Settle six deliveries: accepted twice, rejected, released, modified in two ways."""
    first, second, third, fourth, fifth, sixth = receiver.wait(6)
    first.settle(Delivery.ACCEPTED)
    sixth.settle(Delivery.ACCEPTED)
    second.settle(Delivery.RELEASED)
    third.settle(Delivery.MODIFIED, failed=True, annotations={"x-opt-why": "too hot"})
    fourth.settle(Delivery.MODIFIED, failed=True, undeliverable=True)
    fifth.settle(Delivery.REJECTED, condition=Condition("app:broken", "it cannot be read"))
    _await_heard(receiver.peer)


def _accept(deliveries: list[Got]) -> None:
    for got in deliveries:
        got.settle(Delivery.ACCEPTED)


def _await_heard(peer: ProtonPeer) -> None:
    """Wait until the broker has read all that a peer has said: it answers another attach."""
    peer.sender(None, name=f"heard {time.monotonic_ns()}")
