"""`ambermq send` where the broker holds it back: the reason, and the end."""

from pathlib import Path

from ambermq.protocol.resources.resource import Resource
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management
from ambermq.tools.messages.publisher import ADVICE, Publisher
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.docs.pages import rows
from tests.tools.conftest import Run


def test_a_sender_without_credit_hears_why_and_ends(run: Run, tmp_path: Path) -> None:
    """After a second it prints the reason, after --timeout it exits 3; the log has a line, and the broker a figure."""
    config = tmp_path / "broker.toml"
    config.write_text(f"[server]\nroom_low_bytes = {1 << 60}\n")
    broker = ChildBroker(tmp_path / "data", arguments=["--config", str(config)])
    broker.start()
    try:
        sent = run("send", "q", "--count", 1500, "--size", 10, "--timeout", 2.5, "--url", broker.url)
        assert sent.exit_code == ExitCode.TIMEOUT
        assert "waiting: the broker gives no credit and no outcome (disk)" in sent.stderr
        assert "expected credit or an outcome within 2.5 s" in sent.stderr
        assert "held back by the broker: disk; free disk space on the broker's machine" in sent.stderr
        with LinkClient.connect(BrokerUrl.parse(broker.url)) as client:
            figures = Management(client).request("READ", "org.ambermq.broker", {})[1]
        assert figures["blocked"] == "disk"
        assert figures["room_low_bytes"] == 1 << 60
        assert 0 < figures["room_bytes"] < figures["disk_bytes"]
        assert figures["disk_is_full"] is False
    finally:
        assert broker.stop() == ExitCode.OK
    assert broker.stderr_path.read_text().count("producers held back") == 1


def test_each_reason_has_its_advice() -> None:
    """The page for clients lists the reasons, and the command knows what to do about each."""
    listed = {row[0].strip("`| ") for row in rows("docs/clients.md", "## When the broker holds a sender back")}
    assert listed == set(ADVICE)
    assert {one.reason for one in Resource} < listed


def test_a_sender_hears_of_a_full_queue_and_of_its_end(run: Run, broker: ChildBroker) -> None:
    """Its messages are rejected, its link says queue-full, and says so no more when the queue takes messages again."""
    assert run("queue", "declare", "small", "--messages-max", 1, "--url", broker.url).exit_code == ExitCode.OK
    with LinkClient.connect(BrokerUrl.parse(broker.url)) as client:
        link = client.attach_sender("small")
        publisher = Publisher(client, link)
        publisher.offer(b"\x00Sw\xa1\x01a", 1)
        publisher.offer(b"\x00Sw\xa1\x01b", 2)
        publisher.finish()
        assert publisher.outcomes == {"accepted": 1, "rejected": 1}
        assert link.blocked == "queue-full"
        assert run("queue", "purge", "small", "--url", broker.url).exit_code == ExitCode.OK
        publisher.offer(b"\x00Sw\xa1\x01c", 3)
        publisher.finish()
        assert publisher.outcomes["accepted"] == 2
        assert link.blocked == ""
