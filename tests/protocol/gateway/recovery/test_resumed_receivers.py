"""Receivers resume their links: what the broker keeps, and what it sends again (transport, 2.6.13)."""

import pytest

from ambermq.engine.config import EngineConfig
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    DeliveryState,
    Detach,
    End,
    Header,
    Modified,
    Received,
    Rejected,
    Released,
    Source,
)
from ambermq.protocol.server_limits import ServerLimits
from tests.protocol.gateway.recovery.resuming import FOREVER, MESSAGE, Resuming
from tests.protocol.peers import Wire

KEPT = {"expiry_policy": "connection-close", "timeout": 60}


def held(count: int = 3, **fields: object) -> tuple[Resuming, list[bytes]]:
    """A receiver that has not settled its deliveries, and their tags."""
    peer = Resuming()
    peer.attach(**fields)
    peer.publish(count)
    return peer, [bytes(one.delivery_tag or b"") for one, _ in peer.receive()]


def test_a_detached_link_keeps_what_is_unsettled_while_its_session_lasts() -> None:
    """Then it returns, with one more failed delivery: the default expiry has no timeout."""
    peer, _ = held()
    rig = peer.wire.rig
    assert rig.loop.state.suspended_count(rig.queue()) == 0
    peer.detach()
    assert peer.counts() == []
    assert rig.loop.state.suspended_count(rig.queue()) == 3
    peer.end_session()
    assert rig.loop.state.suspended_count(rig.queue()) == 0
    assert peer.counts() == [1, 1, 1]


@pytest.mark.parametrize("how", ["closed", "link-detach", "lost", "no container"])
def test_what_keeps_nothing(how: str) -> None:
    """A close, the policy link-detach, a lost connection without a timeout, a container without an id."""
    peer = Resuming(container="" if how == "no container" else "c")
    peer.attach(terminus={"expiry_policy": "link-detach"} if how == "link-detach" else {})
    peer.publish(2)
    peer.receive()
    if how == "lost":
        peer.lose()
    else:
        peer.detach(closed=how == "closed")
        peer.wire.settle()
    assert peer.counts() == [1, 1]


def test_the_answer_has_what_applies() -> None:
    """A timeout beyond the limit is reported as the limit."""
    peer = Resuming(config=EngineConfig(suspended_s_max=30))
    source = peer.attach(terminus={"durable": 2, "expiry_policy": "connection-close", "timeout": 1000}).source
    assert source is not None
    assert (source.durable, source.expiry_policy, source.timeout) == (2, "connection-close", 30)


@pytest.mark.parametrize("deliveries", [1, 2])
def test_a_resumed_delivery_has_the_same_bytes(deliveries: int) -> None:
    """Also the first-acquirer: true for the first delivery of a message, false for one after a release."""
    peer = Resuming()
    producer = peer.rig.producer()
    message = Message(header=Header(durable=True, first_acquirer=True), body=(Data(b"x"),))
    peer.rig.do(peer.rig.publish(producer, message.encode()))
    peer.attach(terminus=FOREVER)
    (one,) = peer.receive(1)
    if deliveries > 1:
        peer.dispose(one[0].delivery_id or 0, settled=True, state=Released())
        peer.wire.settle()
        (one,) = peer.receive(1, count=1)
    known = decode_message(one[1]).header
    assert known is not None
    assert known.first_acquirer is (deliveries == 1)
    peer.detach()
    peer.attach(terminus=FOREVER, unsettled={bytes(one[0].delivery_tag or b""): None})
    (again,) = peer.receive(1)
    assert again[0].resume
    assert again[1] == one[1]


def test_a_map_above_the_limit_ends_the_session() -> None:
    """The link stays suspended: on another session it resumes with a part of the map."""
    peer, tags = held(terminus=FOREVER)
    peer.detach()
    unsettled = dict.fromkeys([*tags, *[b"%032d" % number for number in range(3000)]])
    long = Attach(name="l", handle=0, role=True, source=Source(address="q", **FOREVER), unsettled=unsettled)
    (said,) = peer.wire.say(long)
    assert isinstance(said, End)
    assert said.error is not None
    assert said.error.condition == "amqp:resource-limit-exceeded"
    assert peer.wire.rig.loop.state.suspended_count(peer.wire.rig.queue()) == 3
    peer.wire.say(End())
    peer.wire.say(Wire.begin())
    peer.attach(terminus=FOREVER, unsettled=dict.fromkeys(tags[:2]), incomplete_unsettled=True)
    assert [bytes(one.delivery_tag or b"") for one, _ in peer.receive()] == tags[:2]


def test_a_null_map_is_no_resumption() -> None:
    """What the link held comes first, as a failed delivery, and the answer has no map."""
    peer, tags = held(terminus=FOREVER)
    peer.detach()
    answer = peer.attach(terminus=FOREVER)
    assert answer.unsettled is None
    again = peer.receive()
    assert [bytes(one.delivery_tag or b"") for one, _ in again] == tags
    assert not any(one.resume for one, _ in again)


def test_a_link_whose_deliveries_are_settled_resumes_nothing() -> None:
    """It could send none of them unsettled: they come first, settled, as failed deliveries."""
    peer, tags = held()
    peer.detach()
    answer = peer.attach(unsettled=dict.fromkeys(tags), snd_settle_mode=1)
    assert answer.unsettled is None
    assert [(bytes(one.delivery_tag or b""), one.settled) for one, _ in peer.receive()] == [(tag, True) for tag in tags]
    assert peer.rig.queue().depth == 0


def test_deliveries_without_an_outcome_are_resumed() -> None:
    """With the flag and the same tag, from the beginning, and no failed delivery; then new ones follow."""
    peer, tags = held()
    peer.detach()
    answer = peer.attach(unsettled=dict.fromkeys(tags))
    assert answer.unsettled == dict.fromkeys(tags)
    assert not answer.incomplete_unsettled
    again = peer.receive()
    assert [(bytes(one.delivery_tag or b""), one.resume, one.settled) for one, _ in again] == [
        (tag, True, False) for tag in tags
    ]
    assert [payload for _, payload in again] == [MESSAGE + bytes((48 + number,)) for number in range(3)]
    peer.publish(1)
    ((fresh, _),) = peer.receive(count=3)
    assert not fresh.resume
    first = again[0][0].delivery_id or 0
    peer.dispose(first, last=first + 3, settled=True, state=Accepted())
    assert peer.rig.queue().depth == 0


@pytest.mark.parametrize("state", [Accepted(), Rejected(), Released(), Modified(delivery_failed=True)])
def test_an_outcome_of_the_receiver_is_taken_over(state: DeliveryState) -> None:
    """Once: a settled transfer without a message says so, and uses a credit."""
    peer, (tag,) = held(1)
    peer.detach()
    assert peer.attach(unsettled={tag: state}).unsettled == {tag: None}
    queue = peer.rig.queue()
    assert (queue.acquired_count, queue.available) == (0, int(isinstance(state, Released | Modified)))
    ((transfer, payload), *rest) = peer.receive(1)
    assert (bytes(transfer.delivery_tag or b""), transfer.resume, transfer.settled) == (tag, True, True)
    assert (payload, type(transfer.state)) == (b"", type(state))
    assert rest == []


def test_what_the_receiver_does_not_know_is_sent_as_new() -> None:
    """A receiver ignores resumed deliveries that it does not have."""
    peer, tags = held()
    peer.detach()
    peer.attach(unsettled={tags[1]: None})
    assert [(bytes(one.delivery_tag or b""), one.resume) for one, _ in peer.receive()] == [
        (tags[0], False),
        (tags[1], True),
        (tags[2], False),
    ]


def test_a_partly_received_delivery_goes_on_where_it_was_cut() -> None:
    """The state of the transfer says where its payload begins."""
    peer, (tag,) = held(1)
    peer.detach()
    position = Received(section_number=0, section_offset=4)
    peer.attach(unsettled={tag: position})
    ((transfer, payload),) = peer.receive()
    assert (transfer.resume, transfer.state, payload) == (True, position, (MESSAGE + b"0")[4:])


@pytest.mark.parametrize("position", [(0, 1000), (7, 0)])
def test_an_impossible_position_means_the_beginning(position: tuple[int, int]) -> None:
    """Then the transfer has no state."""
    peer, (tag,) = held(1)
    peer.detach()
    peer.attach(unsettled={tag: Received(section_number=position[0], section_offset=position[1])})
    ((transfer, payload),) = peer.receive()
    assert (transfer.state, payload) == (None, MESSAGE + b"0")


def test_a_tag_that_is_not_held_is_not_in_our_map() -> None:
    """So the receiver knows that it is settled."""
    peer, _ = held(1)
    peer.detach()
    assert bytes(8) + b"12345678" not in (peer.attach(unsettled={bytes(8) + b"12345678": None}).unsettled or {})


def test_a_bad_map_is_refused() -> None:
    """Its keys are tags."""
    peer = Resuming()
    said = peer.attach(unsettled={"no tag": None})
    assert said.source is None


def test_a_map_that_does_not_fit_is_incomplete() -> None:
    """Then only what the receiver has is sent, and nothing new, until it attaches with a whole map."""
    peer = Resuming(max_frame_size=512)
    peer.attach()
    peer.publish(100)
    tags = [bytes(one.delivery_tag or b"") for one, _ in peer.receive()]
    peer.detach()
    answer = peer.attach(unsettled={tags[0]: None}, incomplete_unsettled=True)
    assert answer.incomplete_unsettled
    assert answer.unsettled
    assert set(answer.unsettled) < set(tags)
    peer.publish(1)
    (transfer, _), *rest = peer.receive()
    assert (bytes(transfer.delivery_tag or b""), transfer.resume, rest) == (tags[0], True, [])
    peer.dispose(transfer.delivery_id or 0, settled=True, state=Accepted())
    peer.detach()
    peer.attach()
    assert len(peer.receive()) == 100


def test_credit_limits_what_is_sent_again() -> None:
    """As any delivery."""
    peer, tags = held(5)
    peer.detach()
    peer.attach(unsettled=dict.fromkeys(tags))
    assert len(peer.receive(2)) == 2
    assert len(peer.receive(2, count=2)) == 2
    assert len(peer.receive(9, count=4)) == 1


def test_detached_while_it_is_sent_again_nothing_is_lost() -> None:
    """What was not sent yet is still held."""
    peer, tags = held(5)
    for _ in range(3):
        peer.detach()
        peer.attach(unsettled=dict.fromkeys(tags))
        assert len(peer.receive(2)) == 2
    peer.detach()
    assert set(peer.attach(unsettled={}).unsettled or {}) == set(tags)
    assert len(peer.receive()) == 5


def test_over_a_lost_connection_with_a_timeout() -> None:
    """Another connection of the container resumes the link."""
    peer, tags = held(terminus=KEPT)
    peer.lose()
    other = Resuming(before=peer)
    assert set(other.attach(terminus=KEPT, unsettled=dict.fromkeys(tags)).unsettled or {}) == set(tags)
    assert [one.resume for one, _ in other.receive()] == [True] * 3


def test_a_stolen_link_is_resumed() -> None:
    """A client may be back before the broker knows that its connection is lost."""
    peer, tags = held(terminus=KEPT)
    other = Resuming(before=peer)
    assert set(other.attach(terminus=KEPT, unsettled=dict.fromkeys(tags)).unsettled or {}) == set(tags)
    assert any(isinstance(one, Detach) for one, _ in peer.wire.settle())


def test_the_timeout_returns_what_was_kept() -> None:
    """By the clock, after the end of the connection."""
    peer, _ = held(terminus={"expiry_policy": "connection-close", "timeout": 5})
    peer.lose()
    assert peer.counts() == []
    peer.rig.now_us += 5_100_000
    peer.rig.do()
    assert peer.counts() == [1, 1, 1]


@pytest.mark.parametrize("is_detached", [True, False])
def test_over_a_kill_of_the_broker(is_detached: bool) -> None:
    """Unsettled-state keeps the deliveries, also of a link that was attached; tags are the same."""
    peer, tags = held(terminus=FOREVER)
    if is_detached:
        peer.detach()
    # Its sync makes the detach durable. Without that the link is kept as one that was attached.
    peer.rig.do(peer.rig.publish(peer.rig.producer("other"), MESSAGE))
    other = Resuming(peer.rig.next_life())
    assert other.counts() == []
    answer = other.attach(terminus=FOREVER, unsettled={tags[0]: Accepted(), **dict.fromkeys(tags[1:])})
    assert set(answer.unsettled or {}) == set(tags)
    assert [(bytes(one.delivery_tag or b""), one.settled) for one, _ in other.receive()] == [
        (tags[0], True),
        (tags[1], False),
        (tags[2], False),
    ]
    assert other.rig.queue().depth == 2


def test_another_durability_does_not_survive_a_kill() -> None:
    """Its deliveries have failed."""
    peer, _ = held(terminus={**FOREVER, "durable": 1})
    assert Resuming(peer.rig.next_life()).counts() == [1, 1, 1]


@pytest.mark.parametrize("known", [0, 2])
def test_deliveries_that_the_receiver_never_got_do_not_make_the_map_incomplete(known: int) -> None:
    """They come as new ones. So a link that held more than fits into a map is resumed, and not incomplete for ever."""
    peer = Resuming(limits=ServerLimits(unsettled_map_bytes_max=64))
    peer.attach()
    peer.publish(20)
    got = [bytes(one.delivery_tag or b"") for one, _ in peer.receive()]
    peer.detach()
    answer = peer.attach(unsettled=dict.fromkeys(got[:known]))
    assert set(answer.unsettled or {}) == set(got[:known])
    assert not answer.incomplete_unsettled
    again = [(bytes(one.delivery_tag or b""), one.resume) for one, _ in peer.receive()]
    assert again == [(tag, index < known) for index, tag in enumerate(got)]
