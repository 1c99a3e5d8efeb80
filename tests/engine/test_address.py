"""The grammar of addresses, case by case."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.address import member_address, parse_address, queue_name
from ambermq.engine.errors import Refused


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("orders", "orders"),
        ("a/b", "a/b"),
        ("a b", "a b"),
        ("%2F", "%2F"),
        ("queue:/x", "queue:/x"),
        ("größe", "größe"),
        ("/queues/orders", "orders"),
        ("/queues/a%2Fb", "a/b"),
        ("/queues/%24management", "$management"),
        ("/queues/orders%2F$management", "orders/$management"),
        ("a$b/c$", "a$b/c$"),
        ("/queues/%2Fqueues%2Fx", "/queues/x"),
        ("/queues/gr%C3%B6%C3%9Fe", "größe"),
        ("/queues/100%25", "100%"),
        ("%zz", "%zz"),
        ("x" * 255, "x" * 255),
    ],
)
def test_a_name_or_a_path_of_queues_means_a_queue(address: str, name: str) -> None:
    """A plain address is the name itself; below /queues/ it is percent-encoded."""
    assert queue_name(address, name_bytes_max=255) == name


@pytest.mark.parametrize(
    ("address", "condition", "part"),
    [
        ("/queues/a/b", "amqp:not-found", "%2F"),
        ("/other", "amqp:not-found", "/queues/"),
        ("/", "amqp:not-found", "/queues/"),
        ("/queues", "amqp:not-found", "/queues/"),
        ("$management", "amqp:not-found", "reserved"),
        ("orders/$management", "amqp:not-found", "reserved"),
        ("news/Subscriptions/mine/$DeadLetterQueue", "amqp:not-found", "reserved"),
        ("", "amqp:invalid-field", "this has 0"),
        ("/queues/", "amqp:invalid-field", "this has 0"),
        ("x" * 256, "amqp:invalid-field", "this has 256"),
        ("ä" * 128, "amqp:invalid-field", "this has 256"),
        ("a\nb", "amqp:invalid-field", "printable"),
        ("/queues/a%00b", "amqp:invalid-field", "printable"),
        ("\ud800", "amqp:invalid-field", "printable"),
        ("/queues/%zz", "amqp:invalid-field", "bad percent escape '%zz'"),
        ("/queues/a%4", "amqp:invalid-field", "bad percent escape '%4'"),
        ("/queues/100%", "amqp:invalid-field", "%25"),
        ("/queues/%FF", "amqp:invalid-field", "UTF-8"),
    ],
)
def test_what_means_no_queue_is_refused(address: str, condition: str, part: str) -> None:
    """Unknown paths and reserved names are not found; names that cannot be are invalid. The message says why."""
    with pytest.raises(Refused, match=condition) as caught:
        queue_name(address, name_bytes_max=255)
    assert caught.value.condition == condition
    assert part in caught.value.description


@given(name=st.text(st.sampled_from("a$/%:* \n"), min_size=1, max_size=8) | st.just("muxer:x"))
def test_a_members_address_means_the_queue(name: str) -> None:
    """Whatever a queue is called, the address that people are told of it means that queue, or the name cannot be."""
    if name.isprintable():
        assert queue_name(member_address(name), name_bytes_max=255) == name
    else:
        with pytest.raises(Refused, match="invalid-field"):
            queue_name(member_address(name), name_bytes_max=255)


@pytest.mark.parametrize(
    "start", ["/x", "$x", "/queues/a/", "/queues/%zz", "/queues/a", "/topics/a/", "/muxers//", "x"]
)
def test_what_is_told_of_an_address_is_short(start: str) -> None:
    """However long it is: peers may send megabytes, and take frames of 512 bytes."""
    with pytest.raises(Refused) as caught:
        parse_address(start + "y" * 10_000 + "/\n", name_bytes_max=255)
    assert len(caught.value.description) < 250
