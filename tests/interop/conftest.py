"""Brokers for peers that we did not write: one a module, and others made to order."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.proton_peer import ProtonPeer
from tests.protocol.tcp import deadline

StartBroker = Callable[..., ChildBroker]
Connect = Callable[..., ProtonPeer]


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """No test hangs."""
    with deadline():
        yield


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildBroker]:
    """A running broker for a whole module; each test uses queues of its own, named for it."""
    child = ChildBroker(tmp_path_factory.mktemp("broker") / "data")
    child.start()
    yield child
    child.kill()


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    """The name of a queue that no other test uses."""
    return str(request.node.name)


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Start a broker of one's own: arguments of `serve`, and the text of its configuration."""
    started: list[ChildBroker] = []

    def start(*arguments: str, config: str = "") -> ChildBroker:
        path = tmp_path / f"broker{len(started)}.toml"
        path.write_text(config)
        child = ChildBroker(tmp_path / f"data{len(started)}", arguments=[*arguments, "--config", str(path)])
        started.append(child)
        child.start()
        return child

    yield start
    for child in started:
        child.kill()


@pytest.fixture
def connect(broker: ChildBroker) -> Iterator[Connect]:
    """Connect with proton, to the module's broker unless a URL is given; all are closed in the end."""
    peers: list[ProtonPeer] = []

    def connect(url: str = "", **options: object) -> ProtonPeer:
        peer = ProtonPeer(url or broker.url, **options)
        peers.append(peer)
        return peer

    yield connect
    for peer in peers:
        peer.drop()


@pytest.fixture
def peer(connect: Connect) -> ProtonPeer:
    """A connection of proton's to the module's broker."""
    return connect()
