"""The delivery-tags of a sender that settles after it knows the outcome."""

from ambermq.protocol.gateway.producers.kept_tags import KEPT_OUTCOME, KeptTags


def test_a_sender_that_resumes_nothing_gets_no_map() -> None:
    """Nor does it get one twice: a map answers one attach."""
    tags = KeptTags()
    assert tags.answer([b"a"]) is None
    tags.note_resumption({}, b"")
    assert tags.answer([b"a"]) == {b"a": KEPT_OUTCOME}
    assert tags.answer([b"a"]) is None


def test_a_delivery_that_was_cut_off_is_stored_in_no_part() -> None:
    """It is in our map without a state if the peer names it, but not if it is stored after all."""
    for theirs, kept, ours in (
        ({b"cut": None}, [], {b"cut": None}),
        ({}, [], {}),
        ({b"cut": None}, [b"cut"], {b"cut": KEPT_OUTCOME}),
    ):
        tags = KeptTags()
        tags.note_resumption(dict(theirs), b"cut")
        assert tags.answer(kept) == ours


def test_a_tag_is_kept_from_the_outcome_until_the_sender_settles() -> None:
    """A delivery that the sender has settled before its outcome is not kept here."""
    tags = KeptTags()
    tags.note_unsettled(1, b"a")
    tags.note_unsettled(2, b"b")
    assert not tags.is_kept(b"a")
    tags.keep(1)
    assert tags.is_kept(b"a")
    assert tags.settled([1, 2, 3]) == [b"a", b"b"]
    tags.forget([b"a", b"b"])
    tags.keep(2)
    assert not tags.is_kept(b"a")
    assert not tags.is_kept(b"b")
