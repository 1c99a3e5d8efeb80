"""One connection for management stays open while its owner does other work."""

import time
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_connection import ManagementConnection
from ambermq.tools.terminal.errors import ToolError

_IDLE_MS = 1500


def test_it_outlives_the_idle_timeout_and_tells_of_its_end(tmp_path: Path) -> None:
    """Heartbeats go on without requests; what has ended the connection is raised by the next request."""
    config = tmp_path / "config.toml"
    config.write_text(f"[connection]\nidle_timeout_ms = {_IDLE_MS}\n")
    broker = ChildBroker(tmp_path / "data", arguments=("--config", str(config)))
    broker.start()
    try:
        with ManagementConnection(LinkClient.connect(BrokerUrl.parse(broker.url))) as connection:
            for number in range(2):
                time.sleep(2 * _IDLE_MS / 1000)
                with connection() as management:
                    management.create(f"number-{number}")
                    assert len(list(management.snapshots())) == number + 1
            broker.kill()
            time.sleep(1)
            with pytest.raises(ToolError, match="the connection broke"), connection() as management:
                management.delete("number-0")
    finally:
        broker.kill()
