"""Muxers, attachments, templates and routes over the management node, in memory."""

from typing import Any

import pytest

from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.routing.router import Router
from ambermq.protocol.amqp10.message.message import Message
from ambermq.protocol.amqp10.types.values import Float, Int, Symbol, Timestamp, UByte, ULong
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from ambermq.protocol.management.operations import KINDS
from ambermq.protocol.management.paging import PAGE_BYTES_MAX, page_of
from tests.protocol.gateway.nodes.test_management_node import Managing, request

MUXER, ATTACHMENT, TEMPLATE = "org.ambermq.muxer", "org.ambermq.attachment", "org.ambermq.template"


def ask(managing: Managing, operation: str, **asked: Any) -> tuple[int, str, dict[str, Any]]:
    """Status, description and body of the answer to a request."""
    (answer,) = managing.ask(request(operation, **asked))
    told = answer.application_properties
    assert told is not None
    return int(told["statusCode"]), str(told["statusDescription"]), value_of(answer)


def value_of(message: Message) -> Any:
    """The value that a message's body is."""
    (section,) = message.body
    return section.value


def rows(managing: Managing, kind: str, **asked: Any) -> list[dict[str, Any]]:
    """All that there is of a type, in order."""
    status, _, body = ask(managing, "QUERY", entityType=kind, **asked)
    assert status == 200
    return [dict(zip(body["attributeNames"], row, strict=True)) for row in body["results"]]


def wired() -> Managing:
    """A muxer of each class, named by it, and the queue `q`."""
    managing = Managing()
    managing.rig.loop.router = Router(RoutingFields)
    for kind in MuxerKind:
        body: dict[str, Any] = {"class": kind.text}
        if kind is MuxerKind.LOSSY:
            body |= {"probability": 0.5, "seed": 7}
        assert managing.status(operation="CREATE", type=MUXER, name=kind.text, body=body) == 201
    assert managing.status(operation="CREATE", name="q") == 201
    return managing


def test_a_muxer_is_made_read_and_deleted() -> None:
    """201, 200 where it is there alike, 409 where it is not; its attributes; 204, and 404 after it."""
    managing = wired()
    same = {"class": "lossy", "probability": 0.5, "seed": 7}
    assert managing.status(operation="CREATE", type=MUXER, name="lossy", body=same) == 200
    assert managing.status(operation="CREATE", type=MUXER, name="lossy", body={"class": "simple"}) == 409
    status, _, body = ask(managing, "READ", type=MUXER, name="lossy")
    muxer = managing.rig.loop.state.muxer_named("lossy")
    assert muxer is not None
    assert (status, body) == (
        200,
        {
            "name": "lossy",
            "id": muxer.id,
            "class": "lossy",
            **dict.fromkeys(("attachments", "producers", "draws"), 0),
            "separator": None,
            "probability": 0.5,
            "seed": 7,
        },
    )
    assert ask(managing, "DELETE", type=MUXER, name="lossy") == (204, "OK", {"attachments": 0})
    assert ask(managing, "READ", type=MUXER, name="lossy") == (404, "no such muxer", {})


def test_muxers_are_listed_in_order_of_their_making() -> None:
    """Those that are predeclared first; a client may name the attributes that it wants."""
    managing = wired()
    names = [row["name"] for row in rows(managing, MUXER)]
    assert names == ["QUEUE", "TOPIC", *(kind.text for kind in MuxerKind)]
    assert rows(managing, MUXER, count=2, offset=1, body={"attributeNames": ["class", "name", "colour"]}) == [
        {"class": "wild-destination", "name": "TOPIC", "colour": None},
        {"class": "simple", "name": "simple", "colour": None},
    ]


@pytest.mark.parametrize(
    ("muxer", "said", "argument"),
    [
        ("simple", {}, None),
        ("lossy", {}, None),
        ("destination", {"destination": "x"}, "x"),
        ("wild-destination", {"pattern": "x.#"}, "x.#"),
        ("selector", {"selector": "x = 1"}, "x = 1"),
        ("property", {"conditions": [{"name": "x"}]}, (Condition("x"),)),
        ("property", {"conditions": [{"name": "x", "value": None}]}, (Condition("x", True, None),)),
        ("property", {"conditions": [{"name": "x", "value": True}]}, (Condition("x", True, True),)),
        ("property", {"conditions": [{"name": "x", "value": UByte(3)}]}, (Condition("x", True, 3),)),
        ("property", {"conditions": [{"name": "x", "value": Float(0.5)}]}, (Condition("x", True, 0.5),)),
        ("property", {"conditions": [{"name": "x", "value": Symbol("s")}]}, (Condition("x", True, "s"),)),
        ("wild-property", {"conditions": [{"name": "x", "value": "a.*"}]}, (Condition("x", True, "a.*"),)),
    ],
)
def test_an_attachment_is_what_it_says(muxer: str, said: dict[str, Any], argument: Any) -> None:
    """Made once, listed as it was said, deleted by what it says or by its id."""
    managing = wired()
    body = {"muxer": muxer, "member": "q", **said}
    assert managing.status(operation="CREATE", type=ATTACHMENT, body=body) == 201
    assert managing.status(operation="CREATE", type=ATTACHMENT, body=body) == 200
    found = managing.rig.loop.state.muxer_named(muxer)
    assert found is not None
    (attachment,) = found.attachments.values()
    assert (attachment.argument, repr(attachment.argument)) == (argument, repr(argument))
    (row,) = rows(managing, ATTACHMENT, muxer=muxer)
    assert {name: value for name, value in row.items() if value is not None} == {
        "name": str(attachment.id),
        "id": attachment.id,
        "muxer": muxer,
        "class": muxer,
        "member": "q",
        **said,
    }
    assert ask(managing, "READ", type=ATTACHMENT, name=str(attachment.id))[2] == row
    assert managing.status(operation="DELETE", type=ATTACHMENT, body=body) == 204
    assert managing.status(operation="DELETE", type=ATTACHMENT, body=body) == 404
    assert managing.status(operation="CREATE", type=ATTACHMENT, body=body) == 201
    (row,) = rows(managing, ATTACHMENT, muxer=muxer)
    assert managing.status(operation="DELETE", type=ATTACHMENT, name=row["name"]) == 204
    assert managing.status(operation="DELETE", type=ATTACHMENT, name=row["name"]) == 404


def test_members_are_named_so_that_they_can_be_said_again() -> None:
    """A muxer after `muxer:`, a queue by an address that means it, whatever it is called."""
    managing = wired()
    names = ("plain", "muxer:simple", "/x", "a%b")
    for name in ("plain", "/queues/muxer%3Asimple", "/queues/%2Fx", "a%b"):
        assert managing.status(operation="CREATE", name=name) == 201
    for member in ("plain", "/queues/muxer%3Asimple", "/queues/%2Fx", "a%b", "muxer:lossy"):
        assert managing.status(operation="CREATE", type=ATTACHMENT, body={"muxer": "simple", "member": member}) == 201
    state = managing.rig.loop.state
    simple = state.muxer_named("simple")
    assert simple is not None
    members = [one.member for _, one in sorted(simple.attachments.items())]
    assert [state.queues[member].name for member in members[:-1]] == list(names)
    for row in rows(managing, ATTACHMENT, muxer="simple"):
        body = {"muxer": "simple", "member": row["member"]}
        assert managing.status(operation="CREATE", type=ATTACHMENT, body=body) == 200


def test_attachments_are_paged_without_gaps() -> None:
    """Over all muxers, each once, in the same order whatever the size of a page."""
    managing = wired()
    for number in range(7):
        managing.status(operation="CREATE", name=f"q{number}")
        managing.status(operation="CREATE", type=ATTACHMENT, body={"muxer": "simple", "member": f"q{number}"})
    every = [row["id"] for row in rows(managing, ATTACHMENT)]
    assert len(every) == 8 + 7
    for count in (1, 4, 15, 100):
        paged = [row["id"] for at in range(0, 15, count) for row in rows(managing, ATTACHMENT, offset=at, count=count)]
        assert paged == every
    assert ask(managing, "QUERY", entityType=ATTACHMENT, muxer="none")[0] == 404


def test_a_page_of_long_texts_ends_early() -> None:
    """And never without a row, so that a client gets every page."""
    row = {"a": "x" * (PAGE_BYTES_MAX // 2), "b": [{"c": "y"}]}
    page = page_of([row] * 5, 5, (), ("a", "b"))
    assert (len(page["results"]), page["total"]) == (2, 5)
    assert len(page_of([{"a": "x" * (2 * PAGE_BYTES_MAX)}] * 5, 5, (), ("a",))["results"]) == 1


@pytest.mark.parametrize(
    ("kind", "operation", "name", "body", "status", "words"),
    [
        (MUXER, "CREATE", "m", {"class": "fast"}, 400, "unknown class 'fast' of muxer: expected simple, "),
        (MUXER, "CREATE", "m", {}, 400, "unknown class None"),
        (MUXER, "CREATE", "m", {"class": "simple", "speed": 1}, 400, "no attribute speed"),
        (MUXER, "CREATE", "m", {"class": "lossy", "probability": "x"}, 400, "'probability' must be a number"),
        (MUXER, "CREATE", "m", {"class": "lossy", "probability": 2}, 400, "from 0 to 1"),
        (MUXER, "CREATE", "m", {"class": "lossy", "seed": 0.5}, 400, "'seed' must be a whole number"),
        (MUXER, "CREATE", "m", {"class": "lossy", "seed": ULong(2**64 - 1)}, 400, "64 bits"),
        (MUXER, "CREATE", "m" * 256, {"class": "simple"}, 400, "1 to 255 bytes"),
        (MUXER, "CREATE", "a/b", {"class": "simple"}, 400, "no '/'"),
        (MUXER, "DELETE", "QUEUE", {}, 403, "predeclared"),
        (MUXER, "DELETE", "none", {}, 404, "no muxer 'none'"),
        (MUXER, "PURGE", "simple", {}, 501, "unknown operation 'PURGE': expected CREATE, DELETE, QUERY, READ, UPDATE"),
        (ATTACHMENT, "CREATE", None, {"muxer": "simple"}, 400, "'member' must be text"),
        (ATTACHMENT, "CREATE", None, {"muxer": "none", "member": "q"}, 404, "no muxer 'none'"),
        (ATTACHMENT, "CREATE", None, {"muxer": "simple", "member": "r"}, 404, "no queue 'r'"),
        (
            ATTACHMENT,
            "CREATE",
            None,
            {"muxer": "simple", "member": "muxer:simple"},
            403,
            "messages would loop: simple -> simple",
        ),
        (ATTACHMENT, "CREATE", None, {"muxer": "simple", "member": "q", "pattern": "x"}, 400, "found pattern"),
        (
            *(ATTACHMENT, "CREATE", None),
            {"muxer": "destination", "member": "q", "pattern": "x", "selector": "y"},
            *(400, "pattern and selector"),
        ),
        (
            *(ATTACHMENT, "CREATE", None),
            {"muxer": "wild-destination", "member": "q", "pattern": "a.b*"},
            *(400, "stands for whole words"),
        ),
        (
            *(ATTACHMENT, "CREATE", None),
            {"muxer": "selector", "member": "q", "selector": "a = = 1"},
            *(400, "character 4"),
        ),
        (
            *(ATTACHMENT, "CREATE", None),
            {"muxer": "property", "member": "q", "conditions": [{"name": "x", "value": [1]}]},
            *(400, "condition 'x': its value must be null, true, false, a number or text"),
        ),
        (
            *(ATTACHMENT, "CREATE", None),
            {"muxer": "property", "member": "q", "conditions": [{"name": "x", "value": float("nan")}]},
            *(400, "finite numbers"),
        ),
        (
            *(ATTACHMENT, "CREATE", None),
            {"muxer": "property", "member": "q", "conditions": [{"value": 1}]},
            *(400, "a condition must be a map of name and value"),
        ),
        (ATTACHMENT, "CREATE", "7", {"muxer": "simple", "member": "q"}, 400, "leave out `name`"),
        (ATTACHMENT, "READ", "x", {}, 400, "must be an attachment's id"),
        (ATTACHMENT, "READ", "99", {}, 404, "no such attachment"),
        (TEMPLATE, "CREATE", "t", {}, 501, "unknown operation 'CREATE': expected QUERY, READ"),
        (TEMPLATE, "READ", "t", {}, 404, "no such template"),
        ("org.ambermq.queue", "CREATE", "n", {"template": "t"}, 404, "no template 't'"),
        ("org.ambermq.queue", "CREATE", "n", {"template": 1}, 400, "must be the name of a template"),
        (
            "org.ambermq.queue",
            "CREATE",
            "n",
            {"messages_max": Timestamp(9)},
            400,
            "expected a whole number",
        ),
        ("org.ambermq.queue", "CREATE", "n", {"messages_max": True}, 400, "expected a whole number"),
        (MUXER, "CREATE", "n", {"class": "lossy", "seed": Timestamp(9)}, 400, "'seed' must be a whole number, found"),
        (MUXER, "CREATE", "n", {"class": "lossy", "probability": Timestamp(1)}, 400, "must be a number, found"),
    ],
)
def test_what_cannot_be_is_answered_and_nothing_happens(
    kind: str, operation: str, name: str | None, body: dict[str, Any], status: int, words: str
) -> None:
    """With a status, the condition that it stands for, and one sentence."""
    managing = wired()
    before = managing.rig.loop.log.draft.next_offset
    asked = {} if name is None else {"name": name}
    (answer,) = managing.ask(request(operation, type=kind, body=body, **asked))
    told = answer.application_properties
    assert told is not None
    assert (told["statusCode"], words in told["statusDescription"]) == (status, True), told
    conditions = {400: "invalid-field", 403: "not-allowed", 404: "not-found", 501: "not-implemented"}
    assert told["errorCondition"] == f"amqp:{conditions[status]}"
    assert managing.rig.loop.log.draft.next_offset == before


def test_deleting_can_be_conditional() -> None:
    """`if-unused` if an attachment leads to it, `if-empty` if it has attachments."""
    managing = wired()
    body = {"muxer": "simple", "member": "muxer:lossy"}
    assert managing.status(operation="CREATE", type=ATTACHMENT, body=body) == 201
    assert managing.status(operation="DELETE", type=MUXER, name="lossy", **{"if-unused": True}) == 409
    assert managing.status(operation="DELETE", type=MUXER, name="simple", **{"if-empty": True}) == 409
    assert managing.status(operation="DELETE", type=MUXER, name="lossy", **{"if-empty": True}) == 204
    assert managing.status(operation="DELETE", type=MUXER, name="simple", **{"if-unused": True}) == 204


@pytest.mark.parametrize(
    ("kind", "operation", "asked"),
    [
        *(
            (kind, "DELETE", {flag: value})
            for kind in ("org.ambermq.queue", MUXER)
            for flag in ("if-unused", "if-empty")
            for value in ("false", 0, Timestamp(1))
        ),
        ("org.ambermq.subscription", "DELETE", {"force": "false"}),
        ("org.ambermq.vhost", "DELETE", {"force": 1}),
    ],
)
def test_a_condition_of_a_request_is_true_or_false(kind: str, operation: str, asked: dict[str, Any]) -> None:
    """Anything else is refused: a text that says false is true to Python."""
    managing = wired()
    before = managing.rig.loop.log.draft.next_offset
    ((flag, value),) = asked.items()
    status, description, _ = ask(managing, operation, type=kind, name="q", **asked)
    assert (status, description) == (400, f"{flag!r} must be true or false, found {value!r}")
    assert managing.rig.loop.log.draft.next_offset == before


@pytest.mark.parametrize("window", [{"offset": Timestamp(0)}, {"count": Timestamp(1)}, {"offset": False}])
def test_a_page_is_asked_for_by_numbers(window: dict[str, Any]) -> None:
    """Of every type; names of attributes are a list."""
    managing = wired()
    for kind in ("org.ambermq.queue", MUXER, ATTACHMENT, TEMPLATE):
        assert "must be a number from 0" in ask(managing, "QUERY", entityType=kind, **window)[1]
        assert "must be a list" in ask(managing, "QUERY", entityType=kind, body={"attributeNames": 0})[1]


def test_a_queue_may_name_its_template() -> None:
    """Templates are listed; a queue made from one says so."""
    managing = Managing()
    assert [(row["name"], row["pattern"], row["attach"]) for row in rows(managing, TEMPLATE)] == [
        ("normal", "#", []),
        ("temporary", "", []),
        ("subscription", "", []),
    ]
    assert ask(managing, "READ", type=TEMPLATE, name="normal")[2]["messages_max"] == 0
    assert managing.status(operation="CREATE", name="t", body={"template": "temporary"}) == 201
    assert ask(managing, "READ", name="t")[2]["template"] == "temporary"


def test_the_node_tells_what_it_can_be_asked() -> None:
    """Types, attributes and operations, of all types or one."""
    managing = Managing()
    assert set(ask(managing, "GET-TYPES")[2]) == set(KINDS)
    assert ask(managing, "GET-TYPES", entityType=MUXER)[2] == {MUXER: []}
    attributes = ask(managing, "GET-ATTRIBUTES", entityType=MUXER)[2][MUXER]
    assert attributes == list(rows(managing, MUXER)[0])
    operations = ask(managing, "GET-OPERATIONS")[2]
    assert operations[MUXER] == ["CREATE", "DELETE", "QUERY", "READ", "UPDATE"]
    told = ["GET-ATTRIBUTES", "GET-LIMITS", "GET-OPERATIONS", "GET-TYPES", "ROUTE"]
    assert operations["org.amqp.management"] == told
    limits = ask(managing, "GET-LIMITS")[2]
    assert (limits["chain_muxers_max"], len(limits)) == (256, 7)
    assert ask(managing, "GET-OPERATIONS", entityType="org.none")[0] == 400


def test_a_route_is_told_with_all_that_matched() -> None:
    """Each muxer on the way, each attachment, LOSSY ones with their probability; nothing is drawn."""
    managing = wired()
    conditions = [{"name": "colour", "value": "red"}]
    for body in (
        {"muxer": "property", "member": "muxer:lossy", "conditions": conditions},
        {"muxer": "lossy", "member": "q"},
    ):
        assert managing.status(operation="CREATE", type=ATTACHMENT, body=body) == 201
    status, _, told = ask(managing, "ROUTE", name="/muxers/property/x", body={"colour": "red"})
    assert (status, told["muxer"], told["destination"]) == (200, "property", "x")
    assert [(hop["muxer"], hop["class"], hop["probability"], hop["matched"]) for hop in told["hops"]] == [
        ("property", "property", None, 1),
        ("lossy", "lossy", 0.5, 1),
    ]
    assert told["hops"][0]["attachments"][0]["conditions"] == conditions
    assert (told["queues"], told["queue_count"], told["lossy"], told["creates"]) == (["q"], 1, ["lossy"], None)
    assert ask(managing, "ROUTE", name="/muxers/property/x", body={"colour": "blue"})[2]["queues"] == []
    assert ask(managing, "READ", type=MUXER, name="lossy")[2]["draws"] == 0


@pytest.mark.parametrize(
    ("name", "body", "status", "words"),
    [
        ("/nowhere", {}, 404, "no node at '/nowhere'"),
        ("/muxers/none", {}, 404, "no muxer 'none'"),
        ("", {}, 400, "names no address in `to`"),
        (7, {}, 400, "must be an address"),
        ("q", {"header.colour": 1}, 400, "AMQP has no field header.colour: expected durable, priority,"),
        ("q", {"header.priority": "high"}, 400, "priority cannot be 'high'"),
        ("q", {"header.priority": True}, 400, "'header.priority' must be of type ubyte, found True"),
        ("q", {"header.priority": 5.0}, 400, "'header.priority' must be of type ubyte, found 5.0"),
        ("q", {"header.ttl": Timestamp(5)}, 400, "'header.ttl' must be of type uint, found Timestamp(5)"),
        ("q", {"header.durable": 1}, 400, "'header.durable' must be of type boolean, found 1"),
        ("q", {"properties.creation-time": True}, 400, "must be of type timestamp, found True"),
        ("q", {"properties.message-id": Timestamp(5)}, 400, "must be of type ulong or uuid or binary or string"),
        ("q", {"properties.subject": 5}, 400, "the message cannot be encoded: "),
    ],
)
def test_a_route_that_cannot_be_asked_for_is_refused(name: Any, body: dict[str, Any], status: int, words: str) -> None:
    """As publishing would, and where no message could be so."""
    managing = wired()
    found, description, _ = ask(managing, "ROUTE", name=name, body=body)
    assert (found, words in description) == (status, True), description


def test_a_long_way_is_counted() -> None:
    """No more attachments and queues are told than a page has rows."""
    managing = wired()
    managing.gateway.limits = type(managing.gateway.limits)(query_results_max=3)
    for number in range(5):
        managing.status(operation="CREATE", name=f"q{number}")
        managing.status(operation="CREATE", type=ATTACHMENT, body={"muxer": "simple", "member": f"q{number}"})
    told = ask(managing, "ROUTE", name="/muxers/simple", body={})[2]
    (hop,) = told["hops"]
    assert (len(hop["attachments"]), hop["matched"], len(told["queues"]), told["queue_count"]) == (3, 5, 3, 5)


def test_fields_of_every_section_are_routed_by() -> None:
    """By the names that conditions have for them."""
    managing = wired()
    fields = {"header.priority": 9, "properties.subject": "eu", "annotations.x": Int(1), "y": True}
    conditions = [{"name": name, "value": value} for name, value in fields.items()]
    body = {"muxer": "property", "member": "q", "conditions": conditions}
    assert managing.status(operation="CREATE", type=ATTACHMENT, body=body) == 201
    assert ask(managing, "ROUTE", name="/muxers/property", body=fields)[2]["queues"] == ["q"]
    for missing in fields:
        rest = {name: value for name, value in fields.items() if name != missing}
        assert ask(managing, "ROUTE", name="/muxers/property", body=rest)[2]["queues"] == []


def test_the_limits_of_a_lossy_muxer_are_kept_as_numbers() -> None:
    """Numbers of any AMQP type are taken."""
    managing = Managing()
    body = {"class": "lossy", "probability": Float(0.25), "seed": Int(-3)}
    assert managing.status(operation="CREATE", type=MUXER, name="m", body=body) == 201
    muxer = managing.rig.loop.state.muxer_named("m")
    assert muxer is not None
    assert muxer.options == Options(probability=0.25, seed=-3)
    assert (type(muxer.options.probability), type(muxer.options.seed)) == (float, int)
