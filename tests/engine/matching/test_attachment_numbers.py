"""Numbers are places in the order of id."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.matching.attachment_numbers import AttachmentNumbers, Moved
from ambermq.engine.model.attachment import Attachment


def _follow(moved: Moved | None, known: dict[int, int]) -> dict[int, int]:
    return known if moved is None else {id_: moved[number] for id_, number in known.items()}


@settings(max_examples=60, deadline=None)
@given(
    order=st.permutations(range(1, 200)),
    gone=st.sets(st.integers(1, 199), min_size=100),
    more=st.sets(st.integers(200, 300)),
)
def test_the_moves_give_every_number(order: list[int], gone: set[int], more: Iterable[int]) -> None:
    """Whatever the order of coming, with holes, and with the same ids coming back."""
    numbers, known, there = AttachmentNumbers(), dict[int, int](), dict[int, Attachment]()

    def come(id_: int) -> None:
        nonlocal known
        there[id_] = Attachment(id_, 7)
        known = _follow(numbers.insert(there[id_], 1), known)
        known[id_] = numbers.number_of(there[id_])

    for id_ in order:
        come(id_)
    for id_ in gone:
        numbers.remove(known.pop(id_))
        del there[id_]
    for id_ in [*more, *sorted(gone)[:5]]:
        come(id_)
    assert numbers.present() == tuple(there[id_] for id_ in sorted(there))
    assert numbers.at(known[id_] for id_ in there) == tuple(there.values())
    assert [known[id_] for id_ in sorted(there)] == sorted(known.values())
