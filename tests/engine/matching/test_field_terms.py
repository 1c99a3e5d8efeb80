"""What equals what, value by value."""

from typing import Any

import pytest

from ambermq.engine.matching.attachment_numbers import AttachmentNumbers
from ambermq.engine.matching.field_terms import FieldTerms, Sign, key_of
from ambermq.engine.matching.muxer_index import MuxerIndex
from ambermq.engine.model.attachment import Attachment, Condition
from ambermq.engine.model.muxer import MuxerKind
from ambermq.protocol.amqp10.types.values import Symbol
from tests.engine.routing.naive import Given, naive_match
from tests.engine.routing.wirings import PLAIN_VALUES, TYPED_VALUES


@pytest.mark.parametrize("kind", [MuxerKind.PROPERTY, MuxerKind.WILD_PROPERTY])
@pytest.mark.parametrize("value", PLAIN_VALUES + TYPED_VALUES, ids=repr)
def test_a_value_is_compared_as_the_page_says(kind: MuxerKind, value: Any) -> None:
    """With every value that a condition can have, all in one index."""
    attachments = [Attachment(2, 7, (Condition("a"),))]
    for number, wanted in enumerate(PLAIN_VALUES, start=3):
        attachments.append(Attachment(number, 7, (Condition("a", has_value=True, value=wanted),)))
    index = MuxerIndex(kind)
    for attachment in attachments:
        index.add(attachment)
    message = Given({"a": value})
    assert list(index.match("", message)) == naive_match(kind, attachments, ".", "", message)


def test_a_key_is_the_value_itself_where_a_dict_may_compare_it() -> None:
    """So terms cost no copy of what wiring holds."""
    text = Symbol("orders")
    assert key_of(text) is text
    assert key_of(True) is Sign.TRUE
    assert key_of(float("nan")) is Sign.NOTHING


def test_terms_hold_one_attachment_as_it_is() -> None:
    """A set is made for the second, and given up when one is left."""
    numbers, terms = AttachmentNumbers(), FieldTerms(None)
    first, second = Attachment(1, 7), Attachment(2, 7)
    for attachment in (first, second):
        numbers.insert(attachment, 1)
        terms.add("x", attachment, numbers)
    assert isinstance(terms.get("x"), bytes)
    terms.remove("x", first, numbers)
    assert terms.get("x") is second
    terms.remove("x", second, numbers)
    assert terms.is_empty()
