"""`make demo`: send durable messages to a broker, kill it half way, and check that no accepted message is lost.

    start a broker in a temporary directory -> send, SIGKILL half way -> start it again -> send what was not accepted
    -> receive everything -> check that every accepted message-id arrived -> print a summary of the log
    -> a snapshot -> the story of one message -> a compaction while the broker runs -> verify the log

Rule 1: a message is accepted if the broker has answered so, before or after the kill. Each of them must arrive.
Rule 2: a duplicate is not an error: the broker stored the message, and the answer was lost with the connection.
Rule 3: the demo always removes its processes and files.
Rule 4: Spark compacts if it is installed, else this process does. The demo prints which.
"""

import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

from ambermq.engine.records.reader import events_of
from ambermq.log.read.log_reader import open_reader
from ambermq.log.recovery.verify import verify
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.tools import cli
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.history.event_text import type_of
from ambermq.tools.history.log_commands import segment_rows
from ambermq.tools.messages.publisher import Publisher
from ambermq.tools.messages.subscriber import Subscriber
from ambermq.tools.terminal.errors import ConnectionBroke, ToolError, translated
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import print_line, print_rows

__all__ = ["main"]

_COUNT: Final = 10_000
_ADDRESS: Final = "demo"
_BODY: Final = b"amber " * 16
_IDLE_SECONDS: Final = 1.0
_SEGMENT_COLUMNS: Final = ("file", "state", "base_offset", "next_offset", "records", "bytes")


class Demo:
    """One run of the demo on one broker."""

    def __init__(self, broker: ChildBroker, count: int = _COUNT, *, runner: str = "spark") -> None:
        """Send `count` messages, whose message-ids are 0 to count - 1; `runner` is the preferred compaction runner."""
        self._broker = broker
        self._count = count
        self._runner = runner
        self._accepted: set[int] = set()
        self._seen: Counter[str] = Counter()

    def run(self) -> None:
        """Run all steps; raise ToolError if a check fails."""
        seconds = self._broker.start()
        print_line(f"broker   {self._broker.url}, ready in {seconds:.2f} s")
        self._send_until_killed()
        before = len(self._accepted)
        first_again = min(set(range(self._count)) - self._accepted)
        print_line(f"killed   with SIGKILL while sending: {before:,} of {self._count:,} messages were accepted")
        seconds = self._broker.start()
        print_line(f"broker   {self._broker.url}, ready again in {seconds:.2f} s")
        self._send(lambda: None)
        print_line(f"sent     the other {self._count - before:,} again: {len(self._accepted):,} accepted")
        self._receive()
        self._check()
        self._summarise()
        self._show_history(first_again)
        self._compact()
        self._end()

    def _send_until_killed(self) -> None:
        """Send, and kill the broker when half of the messages are accepted and more are in flight."""

        def kill_half_way() -> None:
            if len(self._accepted) >= self._count // 2:
                self._broker.kill()

        try:
            self._send(kill_half_way)
        except ConnectionBroke:
            return
        raise ToolError("the broker survived SIGKILL", where=_ADDRESS)

    def _send(self, after_each: Callable[[], None]) -> None:
        """Send all messages that are not accepted, the lowest number first, and wait for the outcomes."""
        with LinkClient.connect(BrokerUrl.parse(self._broker.url)) as client:
            publisher = Publisher(client, client.attach_sender(_ADDRESS), window=500, on_outcome=self._record)
            for number in [number for number in range(self._count) if number not in self._accepted]:
                publisher.offer(_message(number), number)
                after_each()
            publisher.finish()

    def _record(self, number: int, outcome: str) -> None:
        if outcome == "accepted":
            self._accepted.add(number)

    def _receive(self) -> None:
        began = time.monotonic()
        with LinkClient.connect(BrokerUrl.parse(self._broker.url)) as client:
            subscriber = Subscriber(client, client.attach_receiver(_ADDRESS))
            for payload in subscriber.payloads(idle_seconds=_IDLE_SECONDS):
                properties = decode_message(payload).properties or Properties()
                self._seen[str(properties.message_id)] += 1
            subscriber.finish()
        seconds = time.monotonic() - began - _IDLE_SECONDS
        again = self._seen.total() - len(self._seen)
        print_line(f"received {self._seen.total():,} messages in {seconds:.2f} s, {again:,} of them redelivered")

    def _check(self) -> None:
        missing = [number for number in sorted(self._accepted) if str(number) not in self._seen]
        unknown = self._seen.keys() - {str(number) for number in range(self._count)}
        if len(self._accepted) < self._count:
            raise ToolError("not accepted", expected=f"{self._count} messages", found=f"{len(self._accepted)}")
        if missing or unknown:
            raise ToolError(
                "accepted messages were lost, or unknown ones were received",
                expected="every accepted message-id, and no other",
                found=f"{len(missing)} lost {missing[:5]}, {len(unknown)} unknown {sorted(unknown)[:5]}",
            )
        print_line(f"checked  all {len(self._accepted):,} accepted messages arrived, none is lost, none unknown")

    def _summarise(self) -> None:
        """Verify the log and print its segments and events."""
        directory = self._verified()
        print_line("")
        with open_reader(directory) as reader:
            print_rows(
                segment_rows(reader), ("file", "state", "base_offset", "next_offset", "records", "bytes"), "table"
            )
            kinds = Counter[str]()
            for readable in reader.batches():
                kinds.update(type_of(event) for event in events_of(readable.batch))
        print_line("")
        print_rows([{"event": kind, "runs": number} for kind, number in kinds.items()], ("event", "runs"), "table")

    def _show_history(self, number: int) -> None:
        """Take a snapshot, and print the story of a message that was sent again after the kill."""
        print_line("\nsnapshot of all queues, while the broker runs\n")
        _run("snapshot", "create", "--name", "demo", "--url", self._broker.url)
        print_line(f"\nstory    of message {number}, which was not accepted before the kill\n")
        _run("history", "message", str(number), "--data", str(self._broker.directory))

    def _compact(self) -> None:
        """Compact the log while the broker runs, and keep no history."""
        arguments = ("log", "compact", "--data", str(self._broker.directory), "--keep-history", "0s", "--runner")
        if self._runner == "spark":
            print_line("\ncompact  with Spark, while the broker runs; no history of finished messages is kept\n")
            try:
                _run(*arguments, "spark", "--master", "local[2]")
            except ToolError as error:
                if error.exit_code != ExitCode.NOT_INSTALLED:
                    raise
                print_line(f"Spark is not available: {error.message}")
            else:
                return
        print_line("\ncompact  in this process, while the broker runs; no history of finished messages is kept\n")
        _run(*arguments, "local")

    def _end(self) -> None:
        """Stop the broker and verify its log."""
        code = self._broker.stop()
        if code != ExitCode.OK:
            raise ToolError("the broker failed at its stop", expected="exit code 0", found=f"{code}")
        print_line("")
        self._verified()

    def _verified(self) -> str:
        """Check every CRC of the log, print how many, and return its directory."""
        directory = str(self._broker.directory)
        report = verify(directory)
        if report.damage is not None:
            raise ToolError("the log is damaged", found=f"{report.damage}")
        print_line(f"log      {report.record_count:,} records in {report.batch_count:,} batches, every CRC checked")
        return directory


def _run(*arguments: str) -> None:
    """Run a command of `ambermq` in this process."""
    cli.main(arguments, prog_name="ambermq", standalone_mode=False)


def _message(number: int) -> bytes:
    message = Message(header=Header(durable=True), properties=Properties(message_id=str(number)), body=(Data(_BODY),))
    return message.encode()


def _terminated(number: int, frame: FrameType | None) -> None:
    del frame
    sys.exit(128 + number)


def main() -> int:
    """Run the demo and return its exit code; print the error if it fails."""
    signal.signal(signal.SIGTERM, _terminated)
    with tempfile.TemporaryDirectory(prefix="ambermq-demo-") as directory:
        broker = ChildBroker(Path(directory) / "data")
        try:
            Demo(broker).run()
        except Exception as error:  # noqa: BLE001 - the edge: one message, as of every command
            failure = translated(error)
            failure.show()
            return failure.exit_code
        finally:
            broker.kill()
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
