"""Virtual hosts behind one port: who comes to which, what they share (nothing), and how they come and go."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import proton
import pytest
from proton.utils import ConnectionClosed, LinkDetached

from ambermq.log.manifest.vhost_directories import load_root
from ambermq.log.storage.disk import DiskStorage
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Begin,
    Close,
    Disposition,
    Open,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.errors import ToolError
from tests.interop.proton_peer import Manager, ProtonPeer
from tests.protocol.peers import Wire
from tests.protocol.tcp import TcpWire, deadline

VHOST = "org.ambermq.vhost"
Connect = Callable[..., ProtonPeer]
_managers: "WeakKeyDictionary[ProtonPeer, Manager]" = WeakKeyDictionary()


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """No test hangs."""
    with deadline():
        yield


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildBroker]:
    """A broker with the virtual hosts `one` and `two`, each test with queues of its own."""
    child = ChildBroker(tmp_path_factory.mktemp("broker") / "data")
    child.start()
    peer = ProtonPeer(child.url)
    for name in ("one", "two"):
        assert asked(peer, "CREATE", name)[0] == 201
    peer.drop()
    yield child
    child.kill()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ChildBroker]:
    """A broker of one's own."""
    (tmp_path / "broker.toml").write_text("[server]\nvhosts_max = 3\n[log]\nballast_bytes = 0\n")
    child = ChildBroker(tmp_path / "data", arguments=["--config", str(tmp_path / "broker.toml")])
    child.start()
    yield child
    child.kill()


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connect to a virtual host of a broker; all are dropped in the end."""
    peers: list[ProtonPeer] = []

    def connect(broker: ChildBroker, vhost: str = "") -> ProtonPeer:
        peer = ProtonPeer(broker.url, **({"virtual_host": f"vhost:{vhost}"} if vhost else {}))
        peers.append(peer)
        return peer

    yield connect
    for peer in peers:
        peer.drop()


def manager_of(peer: ProtonPeer) -> Manager:
    """Return the one pair of management links that a connection has."""
    manager = _managers.get(peer)
    if manager is None:
        manager = _managers[peer] = Manager(peer)
    return manager


def asked(peer: ProtonPeer, operation: str, name: str | None = None, **asked: object) -> tuple[int, dict[str, Any]]:
    """Ask about virtual hosts; return status and body of the answer."""
    body = asked.pop("body", None)
    answer = manager_of(peer).ask(operation, name, body, type=VHOST, entityType=VHOST, **asked)
    assert answer.properties is not None
    return answer.properties["statusCode"], answer.body


def rows(peer: ProtonPeer) -> dict[str, dict[str, Any]]:
    """Return the attributes of all virtual hosts, by name and in their order."""
    _, body = asked(peer, "QUERY")
    found = [dict(zip(body["attributeNames"], row, strict=True)) for row in body["results"]]
    assert body["total"] == len(found)
    return {row["name"]: row for row in found}


def taken(peer: ProtonPeer, queue: str, count: int) -> list[object]:
    """Receive messages, accept them and return their bodies."""
    receiver = peer.receiver(queue, credit=count)
    got = receiver.wait(count)
    for each in got:
        each.delivery.update(proton.Delivery.ACCEPTED)
        each.delivery.settle()
    receiver.close()
    return [each.message.body for each in got]


def test_two_virtual_hosts_share_nothing(broker: ChildBroker, connect: Connect) -> None:
    """The same queue name is two queues, with messages, counts and logs of their own, after a kill too."""
    manager = connect(broker)
    assert asked(manager, "CREATE", "other")[0] == 201
    for vhost, bodies in (("", ["a", "b", "c"]), ("other", ["x"])):
        connect(broker, vhost).sender("q").send(*bodies)
    told = rows(manager)
    assert [(name, row["queues"], row["messages"]) for name, row in told.items()] == [
        ("default", 1, 3),
        ("other", 1, 1),
    ]
    assert told["default"]["log_id"] != told["other"]["log_id"]
    broker.kill()
    broker.start()
    again = rows(connect(broker))
    assert [(name, row["messages"], row["log_id"]) for name, row in again.items()] == [
        ("default", 3, told["default"]["log_id"]),
        ("other", 1, told["other"]["log_id"]),
    ]
    assert taken(connect(broker, "other"), "q", 1) == ["x"]
    assert taken(connect(broker), "q", 3) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("hostname", "vhost"),
    [
        (None, "default"),
        ("", "default"),
        ("127.0.0.1", "default"),
        ("one", "default"),
        ("vhost:", "default"),
        ("vhost:three", "default"),
        ("vhost:vhost:one", "default"),
        ("VHOST:one", "default"),
        ("vhost:default", "default"),
        ("vhost:one", "one"),
        ("vhost:two", "two"),
    ],
)
def test_the_hostname_of_the_open_chooses(shared: ChildBroker, hostname: str | None, vhost: str) -> None:
    """`vhost:NAME` of one that there is; everything else means the default one. Our open says which it was."""
    with TcpWire(shared.url) as wire:
        wire.give(AMQP_HEADER)
        wire.say(Open(container_id="wire", hostname=hostname))
        opened = wire.expect(Open)
        assert opened.properties is not None
        assert opened.properties[Symbol("vhost")] == vhost


def test_what_comes_with_the_open_goes_where_it_says(shared: ChildBroker, connect: Connect) -> None:
    """Header, open, begin, attach and a message in one write: all of it is the named virtual host's."""
    with TcpWire(shared.url) as wire:
        frames = (
            Open(container_id="wire", hostname="vhost:two"),
            Wire.begin(),
            Attach(
                name="l",
                handle=0,
                role=False,
                source=Source(),
                target=Target(address="piped"),
                initial_delivery_count=0,
            ),
        )
        wire.give(AMQP_HEADER + b"".join(map(Wire.frame, frames)))
        wire.expect(Begin)
        wire.expect(Attach)
        wire.say(Transfer(handle=0, delivery_id=0, delivery_tag=b"t"), payload=b"\x00\x53\x77\xa1\x05piped")
        wire.expect(Disposition)
    assert taken(connect(shared, "two"), "piped", 1) == ["piped"]
    assert manager_of(connect(shared)).ask("READ", "piped").properties == {
        "statusCode": 404,
        "statusDescription": "no such queue",
        "errorCondition": "amqp:not-found",
    }


def test_a_reset_ends_links_and_leaves_the_connection(shared: ChildBroker, connect: Connect) -> None:
    """Queues and messages are gone; producers and consumers hear why; the other virtual hosts notice nothing."""
    peer, other = connect(shared, "one"), connect(shared, "two")
    other.sender("kept").send("kept")
    sender, receiver = peer.sender("gone"), peer.receiver("held", credit=1)
    sender.send("1", "2")
    peer.sender("held").send("3")
    receiver.wait(1)
    assert asked(connect(shared), "RESET", "one")[1] == {"queues": 2, "messages": 3}
    with pytest.raises(LinkDetached):
        peer.wait(lambda: False, "the end of the links")
    for link in (sender.link, receiver.link):
        assert link.remote_condition is not None
        assert link.remote_condition.name == "amqp:resource-deleted"
        assert link.remote_condition.description == "the virtual host was reset"
    fresh = connect(shared, "one")
    fresh.sender("gone").send("new")
    assert taken(fresh, "gone", 1) == ["new"]
    assert taken(other, "kept", 1) == ["kept"]


def test_one_with_connections_is_deleted_by_force_alone(broker: ChildBroker, connect: Connect) -> None:
    """The deletion fails while clients are connected; by force it closes them with amqp:connection:forced."""
    manager = connect(broker)
    asked(manager, "CREATE", "gone")
    peer = connect(broker, "gone")
    peer.sender("q").send("lost")
    receiver = peer.receiver("q", credit=10)
    assert asked(manager, "DELETE", "gone")[0] == 409
    receiver.wait(1)
    status, body = asked(manager, "DELETE", "gone", force=True)
    assert (status, body) == (204, {"name": "gone", "connections": 1, "messages": 1})
    with pytest.raises(ConnectionClosed) as closed:
        peer.wait(lambda: False, "the close")
    assert closed.value.condition == "amqp:connection:forced"
    assert list(rows(manager)) == ["default"]
    assert list((broker.directory / "vhosts").iterdir()) == []
    fallen = connect(broker, "gone")
    properties = manager_of(fallen).ask("READ", "q").properties
    assert properties is not None
    assert properties["statusCode"] == 404
    assert asked(manager, "CREATE", "gone")[0] == 201
    assert rows(manager)["gone"]["queues"] == 0


def test_one_without_connections_is_deleted(broker: ChildBroker, connect: Connect) -> None:
    """It stays deleted after a kill."""
    manager = connect(broker)
    asked(manager, "CREATE", "gone")
    asked(manager, "CREATE", "stays")
    connect(broker, "gone").blocking.close()
    assert asked(manager, "DELETE", "gone")[0] == 204
    broker.kill()
    broker.start()
    assert list(rows(connect(broker))) == ["default", "stays"]


@pytest.mark.parametrize(
    ("operation", "name", "extra", "status", "why"),
    [
        ("CREATE", "a/b", {}, 400, "'a/b' cannot be a virtual host's name"),
        ("CREATE", ".a", {}, 400, "no dot at the start"),
        ("CREATE", "x" * 65, {}, 400, "1 to 64 of"),
        ("CREATE", "default", {}, 409, "there is a virtual host 'default' already"),
        ("CREATE", "one", {}, 409, "there is a virtual host 'one' already"),
        ("CREATE", "new", {"body": {"directory": "new~00000000"}}, 409, "was not prepared"),
        ("CREATE", "new", {"body": {"directory": "../segments"}}, 409, "was not prepared"),
        ("CREATE", "new", {"body": {"directory": 5}}, 400, "'directory' must be text"),
        ("CREATE", "new", {"body": {"size": 5}}, 400, "no attribute size"),
        ("CREATE", None, {}, 400, "must be the name of the vhost"),
        ("READ", "three", {}, 404, "no virtual host 'three'"),
        ("RESET", "three", {}, 404, "no virtual host 'three'"),
        ("DELETE", "three", {"force": True}, 404, "no virtual host 'three'"),
        ("DELETE", "default", {"force": True}, 403, "the default virtual host cannot be deleted"),
        ("PURGE", "one", {}, 501, "unknown operation 'PURGE'"),
    ],
)
def test_what_cannot_be_done_is_answered(
    shared: ChildBroker, connect: Connect, operation: str, name: str, extra: dict[str, Any], status: int, why: str
) -> None:
    """With a status and a reason, and nothing changed."""
    peer = connect(shared)
    before = (shared.directory / "VHOSTS").read_bytes()
    body = extra.get("body")
    rest = {key: value for key, value in extra.items() if key != "body"}
    answer = manager_of(peer).ask(operation, name, body, type=VHOST, **rest)
    assert answer.properties is not None
    assert answer.properties["statusCode"] == status
    assert why in answer.properties["statusDescription"]
    assert (shared.directory / "VHOSTS").read_bytes() == before


def test_there_are_so_many_at_most(broker: ChildBroker, connect: Connect) -> None:
    """vhosts_max counts the default one too; what is deleted makes room."""
    manager = connect(broker)
    assert [asked(manager, "CREATE", name)[0] for name in ("b", "c", "d")] == [201, 201, 507]
    assert asked(manager, "DELETE", "b")[0] == 204
    assert asked(manager, "CREATE", "d")[0] == 201


def test_so_many_are_prepared_at_most(broker: ChildBroker, connect: Connect) -> None:
    """Unfinished copies cannot fill the disk: the broker discards the oldest, which can then not be adopted."""
    manager = connect(broker)
    prepared = [asked(manager, "PREPARE", f"n{number}")[1]["directory"] for number in range(4)]
    assert load_root(DiskStorage(), str(broker.directory)).removed == tuple(prepared[1:])
    assert asked(manager, "CREATE", "n0", body={"directory": prepared[0]})[0] == 409


def test_a_page_of_them(shared: ChildBroker, connect: Connect) -> None:
    """In the order in which they were made, the default one first; one is read by its name."""
    peer = connect(shared)
    _, body = asked(peer, "QUERY", offset=1, count=1)
    assert ([row[0] for row in body["results"]], body["total"]) == (["one"], 3)
    assert asked(peer, "READ", "two")[1]["name"] == "two"
    assert rows(peer)["default"]["connections"] >= 1


def test_what_is_being_prepared_when_the_broker_dies_is_swept(broker: ChildBroker, connect: Connect) -> None:
    """And cannot be adopted by the next one."""
    directory = asked(connect(broker), "PREPARE", "new")[1]["directory"]
    path = broker.directory / "vhosts" / directory
    path.mkdir(parents=True)
    (path / "MANIFEST").write_text("half")
    broker.kill()
    broker.start()
    assert not path.exists()
    status, _ = asked(connect(broker), "CREATE", "new", body={"directory": directory})
    assert status == 409


@pytest.mark.parametrize("which", ["VHOSTS", "MANIFEST"])
def test_damage_of_any_virtual_host_refuses_the_start(broker: ChildBroker, connect: Connect, which: str) -> None:
    """With exit code 5, naming the file; nothing is deleted."""
    asked(connect(broker), "CREATE", "other")
    (vhost,) = load_root(DiskStorage(), str(broker.directory)).vhosts
    broker.stop()
    place = broker.directory if which == "VHOSTS" else broker.directory / "vhosts" / vhost.directory
    content = (place / which).read_bytes()
    (place / which).write_bytes(content.replace(b"{", b"[", 1))
    with pytest.raises(ToolError, match="damaged at position"):
        broker.start()
    assert str(place / which) in broker.last_log_line()
    (place / which).write_bytes(content)
    broker.start()
    assert list(rows(connect(broker))) == ["default", "other"]


def test_a_close_of_one_connection_is_none_of_the_others(shared: ChildBroker, connect: Connect) -> None:
    """Connections that come and go in one virtual host are counted there."""
    manager = connect(shared)
    before = rows(manager)["two"]["connections"]
    with TcpWire.begun(shared.url, hostname="vhost:two") as wire:
        assert rows(manager)["two"]["connections"] == before + 1
        wire.say(Close())
        wire.expect(Close)
    assert rows(manager)["two"]["connections"] == before


def test_an_advanced_one_has_what_was_declared(broker: ChildBroker, connect: Connect) -> None:
    """Plain addresses, topics and dynamic nodes are not found; wiring by hand works, and all that after a kill too."""
    manager = connect(broker)
    status, made = asked(manager, "CREATE", "bare", body={"mode": "advanced"})
    assert (status, made["mode"]) == (201, "advanced")
    assert {name: row["mode"] for name, row in rows(manager).items()} == {"default": "automatic", "bare": "advanced"}
    bare = connect(broker, "bare")
    declare = manager_of(bare).ask
    declare("CREATE", "in", {"class": "destination"}, type="org.ambermq.muxer")
    declare("CREATE", "orders", None, type="org.ambermq.queue")
    attached = declare(
        "CREATE", None, {"muxer": "in", "member": "orders", "destination": "x"}, type="org.ambermq.attachment"
    )
    assert attached.properties is not None
    assert attached.properties["statusCode"] == 201
    bare.sender("/muxers/in/x").send("one")
    broker.kill()
    broker.start()
    bare = connect(broker, "bare")
    for address in ("orders", "/queues/orders", "/topics/news"):
        with pytest.raises(LinkDetached, match="this virtual host is in advanced mode"):
            bare.sender(address)
    for address in ("other", "/topics/news"):
        with pytest.raises(LinkDetached, match="this virtual host is in advanced mode"):
            bare.receiver(address, credit=0)
    assert taken(bare, "orders", 1) == ["one"]
    manager = connect(broker)
    assert asked(manager, "RESET", "bare")[0] == 200
    assert asked(manager, "READ", "bare")[1]["mode"] == "advanced"
    assert manager_of(connect(broker, "bare")).ask("QUERY", entityType="org.ambermq.muxer").body["total"] == 0


def test_a_mode_that_there_is_not_makes_nothing(broker: ChildBroker, connect: Connect) -> None:
    """It is refused, as is a mode for a log that has its own."""
    manager = connect(broker)
    assert asked(manager, "CREATE", "bare", body={"mode": "other"})[0] == 400
    assert asked(manager, "CREATE", "bare", body={"mode": "advanced", "directory": "bare~12345678"})[0] == 400
    assert [*rows(manager)] == ["default"]
