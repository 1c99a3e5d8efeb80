"""A producing link: what a run of messages publishes, whether each is read or recognised by how it begins."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import Publish
from ambermq.engine.effects import PublishDone
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.protocol.amqp10.errors import DecodeError, LinkFault
from ambermq.protocol.amqp10.events import TransferRun
from ambermq.protocol.amqp10.link.receiver import ANY_RUN
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.message.publish_outline import Outline, read_outline
from ambermq.protocol.amqp10.message.redelivery import without_delivery_annotations
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    DeliveryState,
    Error,
    Header,
    Properties,
    Rejected,
    Released,
)
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.links.traffic import Traffic
from ambermq.protocol.gateway.producers.producer_credit import ProducerCredit
from ambermq.protocol.gateway.producers.producer_link import ProducerLink
from ambermq.protocol.server_limits import ServerLimits

RUN_BYTES_MAX = 100

KINDS = [
    Message(header=Header(durable=True)),
    Message(header=Header(durable=False)),
    Message(),
    Message(header=Header(durable=True), message_annotations={"x-a": 1}),
    Message(header=Header(durable=True), delivery_annotations={"x-d": 1}),
    Message(header=Header(durable=True), properties=Properties(message_id="a")),
    Message(properties=Properties(message_id="b")),
    Message(properties=Properties(subject="s")),
    Message(message_annotations={"x-opt-delivery-time": 10**12}),
    Message(message_annotations={"x-opt-delivery-time": 2 * 10**12}),
    Message(message_annotations={"x-opt-delivery-delay": 5}),
]


def encoded(kind: Message, body: bytes) -> bytes:
    """Encode a message of a kind around a body."""
    return Message(
        header=kind.header,
        delivery_annotations=kind.delivery_annotations,
        message_annotations=kind.message_annotations,
        properties=kind.properties,
        body=(Data(body),),
    ).encode()


messages = st.builds(encoded, st.sampled_from(KINDS), st.binary(max_size=30))
alike = st.sampled_from(KINDS).flatmap(
    lambda kind: st.lists(st.binary(max_size=30).map(lambda body: encoded(kind, body)), min_size=1, max_size=5)
)
runs = st.lists(alike | st.lists(messages, min_size=1, max_size=4), max_size=6)


def producing(submitted: list[Publish], bytes_max: int = RUN_BYTES_MAX) -> ProducerLink:
    """Make a producing link whose engine only notes what it is told."""
    engine = SimpleNamespace(publish=submitted.append)
    peer: Any = SimpleNamespace(gateway=SimpleNamespace(engine=engine, is_credit_stopped=False, traffic=Traffic()))
    nothing: Any = None
    link: Any = SimpleNamespace(run_max=ANY_RUN)
    return ProducerLink(peer, link, ServerLimits(run_bytes_max=bytes_max), nothing)


def times_of(command: Publish) -> list[int]:
    """Return the time of each message of a command."""
    return command.times_ms or [command.time_ms] * len(command.bodies)


def settling() -> Any:
    """Make a link that notes its settlements as `states`, and its credit as `grants`."""
    states: list[Any] = []
    grants: list[int] = []
    session = SimpleNamespace(settle=lambda *state: states.append(state))
    link = SimpleNamespace(session=session, credit=ServerLimits().credit_max, grant=grants.append, run_max=ANY_RUN)
    return SimpleNamespace(states=states, grants=grants, link=link)


def use_link(link: ProducerLink, noted: Any, limits: ServerLimits | None = None) -> None:
    """Connect a producing link with the link that notes its grants and outcomes."""
    link.link = noted.link
    link.credit = ProducerCredit(link.peer, noted.link, limits or link.limits)


def run_of(payloads: list[bytes], first_id: int, *, as_views: bool = False, settled: bool = False) -> TransferRun:
    """Make the event of a run."""
    link: Any = None
    return TransferRun(link, first_id, [memoryview(one) if as_views else one for one in payloads], settled)


@settings(max_examples=200, deadline=None)
@given(runs, st.booleans(), st.booleans())
def test_messages_are_published_as_each_is(sent: list[list[bytes]], as_views: bool, settled: bool) -> None:
    """Ids, hashes, durability and times are those of each message by itself, whatever came before it on the link."""
    submitted: list[Publish] = []
    link = producing(submitted)
    first_id = 0xFFFFFFFD
    expected = []
    for payloads in sent:
        link.publish(run_of(payloads, first_id, as_views=as_views, settled=settled))
        for payload in payloads:
            outline = read_outline(payload)
            span = outline.delivery_annotations
            body = payload if span is None else without_delivery_annotations(payload, span)
            expected.append((first_id, bytes(body), outline.id_hash, outline.is_durable, *outline.delivery))
            first_id = (first_id + 1) & 0xFFFFFFFF
    published = [
        ((command.first_id + index) & 0xFFFFFFFF, bytes(body), id_hash, command.durable, time_ms, command.delay_ms)
        for command in submitted
        for index, (body, id_hash, time_ms) in enumerate(
            zip(command.bodies, command.id_hashes, times_of(command), strict=True)
        )
    ]
    assert published == expected
    assert link.credit.unfinished == len(expected)
    for command in submitted:
        assert command.settled is settled
        assert command.size == sum(map(len, command.bodies))
        assert command.size <= RUN_BYTES_MAX or len(command.bodies) == 1


def test_runs_are_limited_while_messages_are_decoded_one_by_one() -> None:
    """Not by the first one, of which none is known; the limit doubles with each whole run of alike messages."""
    link = producing([], 1 << 20)
    alike, other = [b"\x00Sp\xc0\x02\x01A\x00Su\xa0\x01x"] * 9000, b"\x00Su\xa0\x01x"
    link.publish(run_of(alike[:2], 0, as_views=False, settled=False))
    assert link.link.run_max == ANY_RUN
    link.publish(run_of([alike[0], other], 2, as_views=False, settled=False))
    first, limits = link.link.run_max, []
    link.publish(run_of(alike[:1], 4, as_views=False, settled=False))
    while link.link.run_max < ANY_RUN:
        limits.append(link.link.run_max)
        link.publish(run_of(alike[: limits[-1]], 5, as_views=False, settled=False))
    assert limits == [first * 2**step for step in range(5)]


def test_messages_of_different_times_and_expiries_share_a_command() -> None:
    """It has a time and an expiry for each message; a time to live is not joined with an expiry by the clock."""
    submitted: list[Publish] = []
    link = producing(submitted)
    link.limits = ServerLimits()
    payloads = [
        Message(
            header=Header(ttl=ttl_ms),
            message_annotations={"x-opt-delivery-time": time_ms},
            properties=Properties(absolute_expiry_time=expires_ms),
            body=(Data(b"x"),),
        ).encode()
        for time_ms, expires_ms, ttl_ms in ((9, 70, None), (8, 70, None), (8, 80, None), (8, 80, 5), (8, 80, 6))
    ]
    link.publish(run_of(payloads, 0))
    found = [(times_of(command), bool(command.ttl_ms), command.lives_ms) for command in submitted]
    assert found == [([9, 8, 8], False, [70, 70, 80]), ([8, 8], True, [5, 6])]


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[2], KINDS[3], KINDS[5], KINDS[7]])
def test_what_begins_as_the_last_message_is_not_read(monkeypatch: pytest.MonkeyPatch, kind: Message) -> None:
    """The outline is read once, where a message has no delivery annotations."""
    submitted: list[Publish] = []
    link = producing(submitted)
    link.publish(run_of([encoded(kind, b"a")], 0))
    monkeypatch.setattr("ambermq.protocol.gateway.producers.message_kind.read_outline", None)
    link.publish(run_of([encoded(kind, b"b"), encoded(kind, b"c")], 1))
    assert [len(command.bodies) for command in submitted] == [1, 2]


def test_messages_with_different_times_are_one_run() -> None:
    """But not with a message that is available at once, or after a delay."""
    submitted: list[Publish] = []
    link, kinds = producing(submitted), [Message(message_annotations={"x-opt-delivery-time": time}) for time in (7, 9)]
    others = [Message(), Message(message_annotations={"x-opt-delivery-delay": 5})]
    sent = [encoded(kind, b"") for kind in (*kinds, kinds[1], others[0], kinds[0], others[1], kinds[1])]
    link.limits = ServerLimits()
    link.publish(run_of(sent, 0, as_views=False, settled=False))
    assert [times_of(command) for command in submitted] == [[7, 9, 9], [0], [7], [0], [9]]


def test_one_message_of_another_kind_is_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a run that is not alike throughout, only what differs from the message before it is read."""
    read: list[bytes] = []

    def counting(payload: bytes) -> Outline:
        read.append(payload)
        return read_outline(payload)

    monkeypatch.setattr("ambermq.protocol.gateway.producers.message_kind.read_outline", counting)
    first, other = encoded(KINDS[0], b"a"), encoded(KINDS[5], b"b")
    producing([]).publish(run_of([first, first, other, other, first], 0))
    assert read == [first, other, first]


BAD = [
    b"",
    b"\x00\x53\x10\x45",
    b"\x00\x53\x72\xc1\x01\x00\x00\x53\x71\xc1\x01\x00\x00\x53\x75\xa0\x00",
    encoded(KINDS[0], b"") + b"\x00",
    encoded(KINDS[0], b"x")[:-1],
    encoded(KINDS[5], b"") + b"\x00\x53\x77\x40",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(messages | st.sampled_from(BAD), max_size=12), st.booleans())
def test_malformed_messages_are_rejected(payloads: list[bytes], as_views: bool) -> None:
    """Each is settled with its error, the messages around it are published under their own ids."""
    submitted: list[Publish] = []
    link, settled = producing(submitted), settling()
    use_link(link, settled)
    first_id = 0xFFFFFFFD
    link.publish(run_of([encoded(KINDS[0], b"")], first_id - 1))
    submitted.clear()
    link.publish(run_of(payloads, first_id, as_views=as_views))
    ids = [(first_id + index) & 0xFFFFFFFF for index in range(len(payloads))]
    assert [(one, 1, "amqp:decode-error") for one, payload in zip(ids, payloads, strict=True) if payload in BAD] == [
        (first, count, state.error.condition) for first, count, state in settled.states
    ]
    published = {
        (command.first_id + index) & 0xFFFFFFFF: bytes(body)
        for command in submitted
        for index, body in enumerate(command.bodies)
    }
    assert set(published) == {one for one, payload in zip(ids, payloads, strict=True) if payload not in BAD}
    assert link.credit.unfinished == 1 + len(published)


@pytest.mark.parametrize("bad", BAD)
def test_a_settled_malformed_message_ends_its_link(bad: bytes) -> None:
    """It has no outcome: its error is raised, and the messages before it are published."""
    submitted: list[Publish] = []
    good = encoded(KINDS[0], b"")
    with pytest.raises(DecodeError):
        producing(submitted).publish(run_of([good, bad, good], 0, settled=True))
    assert [len(command.bodies) for command in submitted] == [1]


def test_credit_after_malformed_messages() -> None:
    """A sender of malformed messages alone gets new credit: its link goes on."""
    link, settled = producing([]), settling()
    use_link(link, settled)
    settled.link.credit = 0
    link.publish(run_of([b""], 0))
    assert settled.grants == [ServerLimits().credit_max]


@pytest.mark.parametrize(
    ("unfinished", "credit", "is_credit_stopped", "granted"),
    [
        (0, 50, False, [100]),
        (0, 51, False, []),
        (0, 0, False, [100]),
        (30, 20, False, [70]),
        (30, 21, False, []),
        (60, 0, False, []),
        (100, 0, False, []),
        (0, 0, True, []),
    ],
)
def test_credit_is_granted_when_half_of_it_is_used(
    unfinished: int, credit: int, is_credit_stopped: bool, granted: list[int]
) -> None:
    """Messages without an outcome use it too. A full disk grants none."""
    peer: Any = SimpleNamespace(gateway=SimpleNamespace(is_credit_stopped=is_credit_stopped, traffic=Traffic()))
    link = ProducerLink(peer, settling().link, ServerLimits(credit_max=100), Any)
    grants: list[int] = []
    link.link.grant, link.link.credit = grants.append, credit  # type: ignore[method-assign]
    link.credit.unfinished = unfinished
    link.credit.top_up()
    assert grants == granted


def _finishing(unfinished: int, credit: int) -> tuple[ProducerLink, Any]:
    """Return a link with messages that have no outcome yet, and what it notes."""
    link, noted = producing([]), settling()
    use_link(link, noted, ServerLimits(credit_max=100, credit_grown_max=350))
    link.credit.unfinished, noted.link.credit = unfinished, credit
    return link, noted


@pytest.mark.parametrize(("kind", "state"), [(OutcomeKind.ACCEPTED, Accepted()), (OutcomeKind.RELEASED, Released())])
def test_a_finished_run_is_settled_and_makes_room_for_others(kind: OutcomeKind, state: DeliveryState) -> None:
    """All of it with one state; the credit grows when no more than half of it is left."""
    link, noted = _finishing(60, 40)
    link.finish(PublishDone(link, 0xFFFFFFFF, 20, kind, settled=False))
    assert noted.states == [(0xFFFFFFFF, 20, state)]
    assert (link.credit.unfinished, noted.grants) == (40, [])
    noted.link.credit = 10
    link.finish(PublishDone(link, 19, 30, kind, settled=False))
    assert (link.credit.unfinished, noted.grants) == (10, [90])


def test_the_credit_of_a_sender_that_waits_for_it_grows() -> None:
    """It doubles when no credit is left while messages become durable, up to its limit, and falls back at rest."""
    link, noted = _finishing(100, 0)
    totals = []
    for count in (60, 150, 250, 250):
        link.finish(PublishDone(link, 0, count, OutcomeKind.ACCEPTED, settled=False))
        # The sender uses all of the new credit at once.
        totals.append(noted.grants[-1] + link.credit.unfinished)
        link.credit.unfinished += noted.grants[-1]
    assert totals == [200, 350, 350, 350]
    noted.link.credit = 1
    link.finish(PublishDone(link, 0, link.credit.unfinished, OutcomeKind.ACCEPTED, settled=False))
    assert noted.grants[-1] == 100
    for limit in (0, 100):
        link, noted = _finishing(100, 0)
        use_link(link, noted, ServerLimits(credit_max=100, credit_grown_max=limit))
        link.credit.unfinished = 100
        link.finish(PublishDone(link, 0, 60, OutcomeKind.ACCEPTED, settled=False))
        assert noted.grants == [60]


def test_a_run_that_its_sender_settled_has_no_outcome() -> None:
    """It counts as finished; what a link gets after its end changes nothing."""
    link, noted = _finishing(30, 50)
    link.finish(PublishDone(link, 0, 10, OutcomeKind.ACCEPTED, settled=True))
    assert (link.credit.unfinished, noted.states, noted.grants) == (20, [], [])
    noted.link.credit = 20
    link.is_open = False
    link.finish(PublishDone(link, 0, 10, OutcomeKind.ACCEPTED, settled=False))
    assert (link.credit.unfinished, noted.states, noted.grants) == (20, [], [])


def test_a_refusal_is_an_outcome_where_the_sender_takes_it() -> None:
    """Else it ends the link, with the tag of the first refused message; then nothing is settled."""
    link, noted = _finishing(30, 50)
    failed: list[Error] = []
    link.peer.producer_failed = lambda _, error: failed.append(error)
    refusal = PublishDone(link, 5, 1, OutcomeKind.REJECTED, settled=False, condition="my:error", description="no")
    link.finish(refusal)
    error = Error(condition=Symbol("my:error"), description="no")
    assert noted.states == [(5, 1, Rejected(error=error))]
    assert (failed, link.credit.unfinished) == ([], 29)
    link._may_reject = False
    link.finish(refusal)
    assert failed == [error]
    link._tags[5], link._tags[6] = b"tag", b"other"
    link.finish(refusal)
    assert failed[1:] == [Error(condition="my:error", description="no", info={Symbol("delivery-tag"): b"tag"})]
    assert (len(noted.states), link.credit.unfinished) == (1, 29)
    link.finish(PublishDone(link, 5, 1, OutcomeKind.ACCEPTED, settled=False))
    assert link._tags == {6: b"other"}


@pytest.mark.parametrize("is_misaddressed", [False, True])
def test_a_settled_refusal_ends_its_link_only_for_an_unknown_address(is_misaddressed: bool) -> None:
    """A message to a full queue is dropped, and its link goes on."""
    link, noted = _finishing(30, 60)
    failed: list[Error] = []
    link.peer.producer_failed = lambda _, error: failed.append(error)
    link._may_reject = False
    link.finish(
        PublishDone(link, 5, 1, OutcomeKind.REJECTED, settled=True, condition="a:b", is_misaddressed=is_misaddressed)
    )
    assert len(failed) == is_misaddressed
    assert (link.credit.unfinished, noted.states) == (30 - (not is_misaddressed), [])


def test_a_full_queue_is_told_once_and_so_is_its_end() -> None:
    """The end tells the reason that holds all senders back by then, if there is one."""
    link, noted = _finishing(30, 60)
    told: list[str] = []
    noted.link.tell_blocked, link.producer = told.append, 1
    gateway: Any = link.peer.gateway
    gateway.queue_full_blocks = gateway.queue_full_ends = 0
    gateway.blocked = ""
    full = PublishDone(link, 5, 1, OutcomeKind.REJECTED, settled=False, condition="a:b", is_queue_full=True)
    taken = PublishDone(link, 5, 1, OutcomeKind.ACCEPTED, settled=False)
    for done in (taken, full, full, taken, taken):
        link.finish(done)
    assert told == ["queue-full", ""]
    assert (gateway.queue_full_blocks, gateway.queue_full_ends) == (1, 1)
    gateway.blocked = "disk"
    for done in (full, taken):
        link.finish(done)
    assert told[2:] == ["queue-full", "disk"]
    link.finish(full)
    assert (told[4:], gateway.queue_full_blocks) == ([], 2)


def test_a_link_to_a_full_queue_waits_for_room() -> None:
    """It is told so once, whatever else holds it back meanwhile; its outcomes end nothing, and its end is no leak."""
    link, noted = _finishing(30, 0)
    told: list[str] = []
    noted.link.tell_blocked, link.producer, link.credit.queue = told.append, 1, "q"
    gateway: Any = link.peer.gateway
    gateway.queue_full_blocks = gateway.queue_full_ends = 0
    gateway.blocked, gateway.full_queues = "", {"q": {}, "other": {}}
    taken = PublishDone(link, 5, 1, OutcomeKind.ACCEPTED, settled=False)
    for _ in range(3):
        link.finish(taken)
    assert (noted.grants, told, gateway.full_queues["q"]) == ([], ["queue-full"], {link.credit: None})
    for reason in ("disk", ""):
        link.tell_blocked(reason)
    assert told[1:] == ["disk", "queue-full"]
    del gateway.full_queues["q"]
    link.credit.resume()
    assert (told[3:], len(noted.grants)) == ([""], 1)
    assert (gateway.queue_full_blocks, gateway.queue_full_ends) == (1, 1)
    gateway.full_queues["q"] = {}
    link.credit.top_up()
    assert gateway.full_queues["q"] == {link.credit: None}
    link.credit.close()
    assert not gateway.full_queues["q"]


def test_delivery_annotations_alone() -> None:
    """They are removed, and a message without any section is not stored: an empty header is."""
    submitted: list[Publish] = []
    producing(submitted).publish(run_of([Message(delivery_annotations={"x-d": 1}, body=()).encode()], 0))
    (body,) = submitted[0].bodies
    assert decode_message(body) == Message(header=Header(), body=())


def test_a_message_format_is_refused() -> None:
    """A delivery could not tell it to its receiver."""
    link: Any = None
    with pytest.raises(LinkFault, match="message-format 0x1"):
        producing([]).publish(TransferRun(link, 0, [b""], settled=False, message_format=1))


def test_a_reason_that_comes_before_the_answer_is_told_after_it() -> None:
    """A link whose attach waits for the disk hears why it is held back, once it is attached."""
    told: list[str] = []
    peer: Any = SimpleNamespace(gateway=SimpleNamespace(blocked="disk", traffic=Traffic()))
    receiver: Any = SimpleNamespace(tell_blocked=told.append)
    terms: Any = None
    link = ProducerLink(peer, receiver, ServerLimits(), terms)
    link.tell_blocked("disk")
    assert told == []
    link.producer = 7
    link.tell_blocked("disk")
    link.tell_blocked("disk")
    link.tell_blocked("")
    assert told == ["disk", ""]
