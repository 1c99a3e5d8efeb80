"""Message-ids as people type them."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.performatives.classes import Properties
from ambermq.protocol.amqp10.types.values import ULong
from ambermq.tools.messages.message_ids import MessageId, id_text, message_id_of, possible_ids

_IDS = st.one_of(
    st.text(max_size=20), st.integers(0, (1 << 64) - 1).map(ULong), st.uuids(), st.binary(min_size=1, max_size=20)
)


def sent_with(message_id: MessageId | None) -> bytes:
    """A message with an id, as it is stored."""
    return Message(properties=Properties(message_id=message_id), body=(Data(b"body"),)).encode()


@given(_IDS)
def test_what_is_shown_of_an_id_means_it(message_id: MessageId) -> None:
    """Whatever type an id has, the text that is shown of it finds it again."""
    assert message_id in possible_ids(str(id_text(message_id)))


@given(_IDS)
def test_a_stored_message_tells_its_id(message_id: MessageId) -> None:
    """The id is read from the message itself, of its own type, whatever follows the properties."""
    found = message_id_of(sent_with(message_id))
    assert found == message_id
    assert isinstance(found, type(message_id) if not isinstance(message_id, int) else int)


@pytest.mark.parametrize(
    "payload",
    [
        sent_with(None),
        Message(body=(Data(b"no properties"),)).encode(),
        b"",
        b"no message",
        sent_with("x")[:8],
    ],
)
def test_a_message_without_an_id_has_none(payload: bytes) -> None:
    """Neither have bytes that are no message: a look-up never fails for one of them."""
    assert message_id_of(payload) is None


def test_a_text_means_each_type_that_it_can_be_written_for() -> None:
    """Digits a ulong too, 32 hex digits a uuid, 0x and hex bytes; a number too large only itself."""
    assert possible_ids("42") == ["42", 42, b"42"]
    assert possible_ids("1" * 20) == ["1" * 20, int("1" * 20), b"1" * 20]
    assert possible_ids("9" * 20) == ["9" * 20, b"9" * 20]
    assert UUID(int=7) in possible_ids(str(UUID(int=7)))
    assert possible_ids("0xff00") == ["0xff00", b"0xff00", b"\xff\x00"]
    assert possible_ids("0xf") == ["0xf", b"0xf"]
