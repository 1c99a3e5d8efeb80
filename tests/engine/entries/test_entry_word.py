"""Words: an offset and a size code in 64 bits."""

from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.entries.entry_word import (
    entry_of,
    make_run,
    make_words,
    pack_words,
    size_code,
    size_of,
    total_size,
    unpack_words,
)

SIZES = st.one_of(st.integers(0, 5000), st.integers(0, 1 << 40))
OFFSETS = st.integers(0, (1 << 47) - 1)


@given(size=SIZES)
def test_a_size_is_rounded_up_by_less_than_a_thousandth(size: int) -> None:
    """What a word accounts for is never less than the message, and hardly more; below 2,048 bytes it is exact."""
    code = size_code(size)
    assert 0 <= code < 1 << 16
    rounded = size_of(code)
    assert size <= rounded
    assert (rounded - size) * 1024 < max(size, 1)
    assert size_code(rounded) == code or size_of(size_code(rounded)) == rounded


@given(one=SIZES, other=SIZES)
def test_larger_messages_never_account_for_less(one: int, other: int) -> None:
    """Rounding is monotone."""
    small, large = sorted((one, other))
    assert size_of(size_code(small)) <= size_of(size_code(large))


def test_a_mantissa_that_overflows_moves_into_the_exponent() -> None:
    """The size after the largest of an exponent is still at least itself."""
    for exponent in range(11, 40):
        size = (1 << exponent) - 1
        assert size_of(size_code(size)) in {size, size + 1}
        assert size_of(size_code(size + 1)) == size + 1


@given(first=OFFSETS, sizes=st.lists(SIZES, max_size=9))
def test_a_run_is_a_word_a_message(first: int, sizes: list[int]) -> None:
    """Made, unpacked, packed and summed: offsets follow each other, and each word accounts for its own size."""
    words = make_words(first, sizes)
    numbers = unpack_words(words)
    assert pack_words(numbers) == words
    assert [entry_of(word) for word in numbers] == list(range(first, first + len(sizes)))
    assert [size_of(word) for word in numbers] == [size_of(size_code(size)) for size in sizes]
    assert total_size(words) == sum(map(size_of, numbers))
    assert make_run(first, sizes) == (words, total_size(words))
    assert words == b"".join(make_words(first + index, [size]) for index, size in enumerate(sizes))


@given(one=st.tuples(OFFSETS, SIZES), other=st.tuples(OFFSETS, SIZES))
def test_words_sort_by_offset(one: tuple[int, int], other: tuple[int, int]) -> None:
    """Whatever the sizes."""
    words = [int.from_bytes(make_words(offset, [size]), "little") for offset, size in (one, other)]
    if one[0] != other[0]:
        assert (words[0] < words[1]) == (one[0] < other[0])
