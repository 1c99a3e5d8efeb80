"""Giving memory back, where the C library can."""

import ctypes
from types import SimpleNamespace

import pytest

from ambermq.log.storage.heap import keep_free_memory, release_free_memory


def test_the_c_library_is_asked_for_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """malloc_trim with 0: nothing free is kept for later."""
    asked: list[int] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(malloc_trim=asked.append))
    release_free_memory()
    assert asked == [0]


def test_the_c_library_is_asked_to_keep_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """mallopt: large buffers come from the heap, whose end keeps 8 MiB."""
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=lambda *option: asked.append(option)))
    keep_free_memory()
    assert asked == [(-3, 32 << 20), (-1, 8 << 20)]


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no such function, nothing happens."""
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    keep_free_memory()
    release_free_memory()
