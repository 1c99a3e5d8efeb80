"""The digest of a message-id: of its type and value."""

from uuid import UUID

from ambermq.engine.entries.id_digest import DIGEST_BYTES, NO_DIGEST, digest_of


def test_each_type_and_value_has_its_own() -> None:
    """And the same value has the same one in each process."""
    ids = ["1", b"1", 1, UUID(int=1), "", b"", 0, (1).to_bytes(16, "big"), (1).to_bytes(8, "big"), "\ud800"]
    digests = [digest_of(one) for one in ids]
    assert len({*digests, NO_DIGEST}) == len(ids) + 1
    assert {len(one) for one in digests} == {DIGEST_BYTES}
    assert digest_of("1").hex() == "540daf00197767d024e1aee3c7b9cfdf"


def test_what_is_no_id_has_none() -> None:
    """Such as a number that is no ulong."""
    none: list[object] = [None, -1, 1 << 64, 1.5, []]
    assert {digest_of(one) for one in none} == {NO_DIGEST}
