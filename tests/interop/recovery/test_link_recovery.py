"""Link recovery over TCP and over SIGKILLs: each message is stored once, and each delivery stays with its receiver."""

from proton import Message

from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Disposition,
    Flow,
    Source,
    Target,
    Transfer,
)
from tests.interop.conftest import Connect, StartBroker
from tests.protocol.peers import FIRST_ID, Wire
from tests.protocol.tcp import TcpWire

FOREVER = {"durable": 2, "expiry_policy": "never"}
BODY = b"\x00\x53\x77\xa1\x01"


def attach(wire: TcpWire, *, sends: bool, **fields: object) -> Attach:
    """Attach the link `l` at the queue `q`, whose terminus keeps what is unsettled."""
    terminus = {"address": "q", **FOREVER}
    source, target = (Source(), Target(**terminus)) if sends else (Source(**terminus), Target())  # type: ignore[arg-type]
    wire.say(
        Attach(
            name="l",
            handle=0,
            role=not sends,
            source=source,
            target=target,
            initial_delivery_count=0 if sends else None,
            rcv_settle_mode=1 if sends else 0,
            **fields,  # type: ignore[arg-type]
        )
    )
    return wire.expect(Attach)


def post(wire: TcpWire, number: int, tag: bytes, body: bytes, *, resume: bool = False) -> None:
    """Send one message."""
    transfer = Transfer(handle=0, delivery_id=FIRST_ID + number & 0xFFFFFFFF, delivery_tag=tag, message_format=0)
    transfer.resume = resume
    wire.give(Wire.frame(transfer, body))


def grant(wire: TcpWire, credit: int, count: int = 0) -> None:
    """Grant credit to the broker."""
    windows = {"next_incoming_id": 0, "incoming_window": 1000, "next_outgoing_id": FIRST_ID, "outgoing_window": 1000}
    wire.say(Flow(handle=0, delivery_count=count, link_credit=credit, **windows))  # type: ignore[arg-type]


def is_settling(said: Composite) -> bool:
    return isinstance(said, Disposition)


def test_a_message_is_published_once_over_kills(start_broker: StartBroker, connect: Connect) -> None:
    """The sender does not know after a kill what was stored; the unsettled maps say so."""
    child = start_broker()
    tags = [b"tag-%d" % number for number in range(8)]
    unsettled = dict.fromkeys(tags)
    wire = TcpWire.begun(child.url, container="c")
    attach(wire, sends=True)
    wire.expect(Flow)
    for number, tag in enumerate(tags[:5]):
        post(wire, number, tag, BODY + b"%d" % number)
        if number < 3:
            wire.expect(Disposition)
    # Two of the messages may be stored, or not.
    child.kill()
    for _ in range(3):
        child.start()
        wire = TcpWire.begun(child.url, container="c")
        answer = attach(wire, sends=True, unsettled=unsettled)
        known = set(answer.unsettled or {})
        assert known >= set(tags[:3])
        wire.expect(Flow)
        for number, tag in enumerate(tags):
            is_known = tag in known
            post(wire, number, tag, b"" if is_known else BODY + b"%d" % number, resume=is_known)
            assert type(wire.expect(Disposition).state) is Accepted
        child.kill()
    child.start()
    got = connect(child.url).receiver("q", credit=20).wait(8)
    assert sorted(each.message.body for each in got) == [str(number) for number in range(8)]


def test_deliveries_stay_with_their_receiver_over_kills(start_broker: StartBroker, connect: Connect) -> None:
    """Their tags are stable, an outcome that the receiver has reached counts once, and nothing has failed."""
    child = start_broker()
    wire = TcpWire.begun(child.url, container="c")
    attach(wire, sends=False)
    connect(child.url).sender("q").send(*map(Message, "abc"))
    grant(wire, 10)
    tags = [bytes(wire.expect(Transfer).delivery_tag or b"") for _ in range(3)]
    state: dict[bytes, object] = dict.fromkeys(tags)
    for _ in range(2):
        child.kill()
        child.start()
        wire = TcpWire.begun(child.url, container="c")
        assert set(attach(wire, sends=False, unsettled=state).unsettled or {}) == set(state)
        grant(wire, 10)
        again = [wire.expect(Transfer) for _ in state]
        assert [bytes(one.delivery_tag or b"") for one in again] == list(state)
        assert all(one.resume for one in again)
        # The receiver accepts the first one now; the broker dies before it hears of it.
        state.pop(next((tag for tag, outcome in state.items() if outcome), b""), None)
        state[next(iter(state))] = Accepted()
    child.kill()
    child.start()
    wire = TcpWire.begun(child.url, container="c")
    assert set(attach(wire, sends=False, unsettled=state).unsettled or {}) == set(state)
    wire.close()
    # Another container gets nothing while they are kept; the null map of the same one returns them.
    wire = TcpWire.begun(child.url, container="c")
    assert attach(wire, sends=False).unsettled is None
    grant(wire, 10)
    left = wire.expect(Transfer)
    assert not left.resume
    assert bytes(left.delivery_tag or b"") == tags[2]
