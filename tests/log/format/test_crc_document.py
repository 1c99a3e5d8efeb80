"""Documents whose last line proves that they are whole, and whose version names the programs that can read them."""

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.log.errors import DamageError, ForeignError
from ambermq.log.format.crc_document import json_with_crc_line, read_document, with_crc_line


@dataclass(frozen=True, slots=True)
class _Place:
    version: int
    name: str
    key: bytes
    rooms: tuple[int, ...] = ()


PLACE = _Place(3, "house", b"\0\xff", (1, 2))
TEXT = json_with_crc_line(PLACE, key=PLACE.key.hex())


def _read(text: bytes) -> _Place:
    return read_document(text, _Place, file="PLACE", what="place", version=3, hex_field="key")


def test_what_was_written_is_read() -> None:
    """Bytes stand there in hex digits."""
    assert _read(TEXT) == PLACE
    assert b'"key": "00ff"' in TEXT


@given(st.data())
def test_no_changed_byte_is_read(data: st.DataObject) -> None:
    """Wherever it stands, and wherever the text is cut."""
    at = data.draw(st.integers(0, len(TEXT) - 1))
    changed = bytes((TEXT[at] ^ data.draw(st.integers(1, 255)),))
    for text in (TEXT[:at] + changed + TEXT[at + 1 :], TEXT[:at]):
        with pytest.raises(DamageError) as caught:
            _read(text)
        assert "PLACE" in str(caught.value)


@pytest.mark.parametrize("fields", [{}, {"name": 7}, {"rooms": {"first": 1}}, {"more": [[]]}])
def test_of_another_version_nothing_else_is_looked_at(fields: dict[str, object]) -> None:
    """What a later program writes may have any fields: it is not damaged."""
    text = with_crc_line(json.dumps({"version": 4} | fields).encode() + b"\n")
    with pytest.raises(ForeignError, match="PLACE has place version 4, this program reads version 3"):
        _read(text)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b"3",
        b"{}",
        b"[" * 100_000,
        b'{"version": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"version": true}',
        b'{"version": 3}',
        b'{"version": 3, "name": "house", "key": "0"}',
        b'{"version": 3, "name": "house", "key": 7}',
        b'{"version": 3, "name": 7, "key": ""}',
        b'{"version": 3, "name": "house", "key": "", "rooms": ["first"]}',
    ],
)
def test_what_is_no_such_document_is_damaged(body: bytes) -> None:
    """A document of another program is damage even if its CRC is right."""
    with pytest.raises(DamageError, match="PLACE"):
        _read(with_crc_line(body + b"\n"))
