"""LIKE: `%` matches any characters, `_` matches one, and a character after the escape character matches itself.

The text between two `%` is a piece. The first piece stands at the start of the text, the last one at its end, and each
other one is searched behind the piece before it.

Rule 1. Each piece is searched once, from left to right: its first occurrence leaves the most text to the others. So
        nothing is ever searched again, and the cost is at most proportional to pattern times text.
Rule 2. A piece without `_` is searched by `str.find`. In a piece with `_`, the first occurrences of its longest part
        are compared. Behind them each character has its own positions, as the bits of an integer, and the occurrences
        of the piece are their conjunction: no text makes this slower.
Rule 3. A text of any length is matched. In a long one a search ends after a block of it, and goes on behind that.
"""

from collections.abc import Callable
from itertools import groupby
from typing import Final, final

__all__ = ["Like", "LikeState", "compile_like"]

_BLOCK: Final = 1 << 13
"""The places of a text that one search covers, so that a match can pause: the slowest one takes 2 ms."""
_COMPARED_MAX: Final = 64
"""The parts of a piece that are compared at single places. A text with more such places is searched by bits."""

_Search = Callable[[str, int, int], int]
"""A function from text, start and end to the end of the first occurrence of a piece, or -1."""

LikeState = tuple[int, int]
"""The state of a match that is not finished: the number of the piece that is searched, and the place in the text."""


def compile_like(pattern: str, escape: str = "") -> "Like":
    """Return a compiled pattern; `escape` is one character, or "" for none.

    Raises ValueError if the pattern ends with its escape character.
    """
    return Like(_pieces(pattern, escape))


@final
class Like:
    """A compiled pattern. Called with a text, it returns whether the text matches."""

    __slots__ = ("_head", "_is_prefix", "_is_suffix", "_is_whole", "_searches", "_tail")

    def __init__(self, pieces: "list[_Piece]") -> None:
        first, last = pieces[0], pieces[-1] if len(pieces) > 1 else []
        self._is_whole = len(pieces) == 1
        self._head, self._tail = len(first), len(last)
        self._is_prefix, self._is_suffix = _comparison(first), _comparison(last)
        self._searches = [(_search(piece), len(piece)) for piece in pieces[1:-1] if piece]

    def __call__(self, text: str) -> bool:
        """Return whether a text matches."""
        found = self.advance(text, None)
        while type(found) is tuple:
            found = self.advance(text, found)
        return found is True

    def advance(self, text: str, state: LikeState | None) -> bool | LikeState:
        """Return whether a text matches, or the state from which to go on; None is the start."""
        end = len(text) - self._tail
        if state is None:
            if end < self._head or (self._is_whole and end > self._head):
                return False
            if not self._is_prefix(text, 0) or not self._is_suffix(text, end):
                return False
            state = 0, self._head
        number, position = state
        searches = self._searches
        while number < len(searches):
            search, length = searches[number]
            stop = position + _BLOCK + length - 1
            found = search(text, position, min(stop, end))
            if found < 0:
                return False if stop >= end else (number, position + _BLOCK)
            number, position = number + 1, found
        return True


_Piece = list[str | None]
"""The characters of a piece; None stands for `_`."""


def _pieces(pattern: str, escape: str) -> list[_Piece]:
    """Return the pieces between the `%`."""
    pieces: list[_Piece] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped is None:
                raise ValueError(f"the pattern {pattern!r} ends with its escape character")
            pieces[-1].append(escaped)
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append(None if character == "_" else character)
    return pieces


def _runs(piece: _Piece) -> list[tuple[int, str]]:
    """Return the texts between the `_` of a piece, each with its place."""
    runs: list[tuple[int, str]] = []
    place = 0
    for is_fixed, group in groupby(piece, key=lambda character: character is not None):
        characters = [character or "" for character in group]
        if is_fixed:
            runs.append((place, "".join(characters)))
        place += len(characters)
    return runs


def _comparison(piece: _Piece) -> Callable[[str, int], bool]:
    """Return a function that returns whether a piece stands at a place of a text that is long enough for it."""
    runs = _runs(piece)
    if len(runs) == 1:
        ((place, run),) = runs
        return lambda text, start: text.startswith(run, start + place)
    return lambda text, start: all(text.startswith(run, start + place) for place, run in runs)


def _search(piece: _Piece) -> _Search:
    """Return the search of a piece that is not empty."""
    runs, length = _runs(piece), len(piece)
    if not runs:
        return lambda _text, start, end: start + length if start + length <= end else -1
    if len(runs) == 1:
        ((place, run),) = runs
        behind = length - place

        def find(text: str, start: int, end: int) -> int:
            found = text.find(run, start + place, end - behind + len(run))
            return found + behind if found >= 0 else -1

        return find
    return _conjunction(piece)


def _conjunction(piece: _Piece) -> _Search:
    """Return the search of a piece with `_` between its characters."""
    length, runs, stands_at = len(piece), _runs(piece), _comparison(piece)
    place, longest = max(runs, key=lambda run: len(run[1]))
    tries = _COMPARED_MAX // len(runs)
    places: dict[str, list[int]] = {}
    for offset, character in enumerate(piece):
        if character is not None:
            places.setdefault(character, []).append(offset)

    def find(text: str, start: int, end: int) -> int:
        for _ in range(tries):
            found = text.find(longest, start + place, end - length + place + len(longest))
            if found < 0:
                return -1
            if stands_at(text, found - place):
                return found - place + length
            start = found - place + 1
        if start + length > end:
            return -1
        found = _first_place(text[start:end], places, length)
        return start + found + length if found >= 0 else -1

    return find


def _first_place(block: str, places: dict[str, list[int]], length: int) -> int:
    """Return the first place of a block where each character of a piece stands at its place behind it, or -1."""
    # The planes of a text are the bytes of its code points: first the lowest byte of each, then the next one.
    points = block[::-1].encode("utf-32-le", "surrogatepass")
    planes = [points[place::4] for place in range(3)]
    left = (1 << (len(block) - length + 1)) - 1
    for character, offsets in places.items():
        here = _positions(planes, character)
        for offset in offsets:
            left &= here >> offset
            if not left:
                return -1
    return (left & -left).bit_length() - 1


def _positions(planes: list[bytes], character: str) -> int:
    """Return the positions of a character as bits."""
    positions = -1
    for plane, octet in zip(planes, ord(character).to_bytes(3, "little"), strict=True):
        if plane.count(octet) < len(plane):
            # CPython reads the digits of an integer of base 2 in C, in linear time and without a limit of their number.
            digits = bytearray(b"0" * 256)
            digits[octet] = ord("1")
            positions &= int(plane.translate(digits), 2)
    return positions
