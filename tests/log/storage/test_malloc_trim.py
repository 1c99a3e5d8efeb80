"""Giving memory back, where the C library can."""

import ctypes
from types import SimpleNamespace

import pytest

from ambermq.log.storage.malloc_trim import release_free_memory


def test_the_c_library_is_asked_for_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """malloc_trim with 0: nothing free is kept for later."""
    asked: list[int] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(malloc_trim=asked.append))
    release_free_memory()
    assert asked == [0]


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no such function, nothing happens."""
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    release_free_memory()
