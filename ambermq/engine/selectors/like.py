"""LIKE: `%` matches any characters, `_` matches one, and a character after the escape character matches itself.

The text between two `%` is a piece. The first piece stands at the start of the text, the last one at its end, and each
other one is searched behind the piece before it.

Rule 1. Each piece is searched once, from left to right: its first occurrence leaves the most text to the others. So
        nothing is ever searched again, and the cost is at most proportional to pattern times text.
Rule 2. A piece without `_` is searched by `str.find`. In a piece with `_`, the first occurrences of its longest part
        are compared. Behind them each character has its own positions, as the bits of an integer, and the occurrences
        of the piece are their conjunction: no text makes this slower.
Rule 3. A text of any length is matched.
"""

from collections.abc import Callable
from itertools import groupby
from typing import Final

__all__ = ["compile_like"]

_BLOCK: Final = 1 << 16
"""The text that one conjunction covers, in characters: a piece is mostly found before the end of a long text."""

_COMPARED_MAX: Final = 64
"""The parts of a piece that are compared at single places. A text with more such places is searched by bits."""

_Search = Callable[[str, int, int], int]
"""A function from text, start and end to the end of the first occurrence of a piece, or -1."""


def compile_like(pattern: str, escape: str = "") -> Callable[[str], bool]:
    """Return a function that returns whether a text matches.

    `escape` is one character, or "" for none. Raises ValueError if the pattern ends with it.
    """
    first, *others = _pieces(pattern, escape)
    is_prefix = _comparison(first)
    if not others:
        length = len(first)
        return lambda text: len(text) == length and is_prefix(text, 0)
    last = others.pop()
    is_suffix = _comparison(last)
    searches = [_search(piece) for piece in others if piece]
    head, tail = len(first), len(last)

    def matches(text: str) -> bool:
        position, end = head, len(text) - tail
        if position > end or not is_prefix(text, 0) or not is_suffix(text, end):
            return False
        for search in searches:
            position = search(text, position, end)
            if position < 0:
                return False
        return True

    return matches


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
        while start + length <= end:
            # The last occurrences of a block reach into the next one.
            found = _first_place(text[start : min(start + _BLOCK + length - 1, end)], places, length)
            if found >= 0:
                return start + found + length
            start += _BLOCK
        return -1

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
