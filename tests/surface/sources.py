"""The shipped source, read as text and as syntax: constants that stand in it, whatever file they stand in."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import ambermq

__all__ = ["called_with", "matching", "names_in_bytes", "words_of_modules"]

_ROOT = Path(ambermq.__file__).parent
_SHIPPED = ("engine", "log", "protocol", "snapshot", "tools")
"""Folders of the package; what is found in them is named by none of them."""
_WORD = re.compile(r"[a-z][A-Za-z_-]*\Z")


@cache
def _found() -> tuple[frozenset[str | bytes], frozenset[tuple[str, str]]]:
    """Return all texts and bytes that are values, and the literal first arguments of calls, by the name called."""
    paths = [path for folder in _SHIPPED for path in sorted((_ROOT / folder).rglob("*.py"))]
    assert len(paths) > 100, "the shipped source is not where it was looked for"
    values: set[str | bytes] = set()
    calls: set[tuple[str, str]] = set()
    for path in paths:
        # No tree outlives its turn: so many objects would make the collector of garbage slow.
        nodes = [*ast.walk(ast.parse(path.read_bytes()))]
        values.update(_values(nodes))
        calls.update(call for node in nodes for call in _calls(node))
    return frozenset(values), frozenset(calls)


def matching(*patterns: str) -> list[str]:
    """Return the texts that one of the patterns matches as a whole."""
    wanted = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
    return sorted(text for text in _found()[0] if isinstance(text, str) and wanted.fullmatch(text))


def names_in_bytes() -> list[str]:
    """Return the names that are written as bytes: magics and tables."""
    found = (value for value in _found()[0] if isinstance(value, bytes) and re.fullmatch(b"[A-Za-z]{3,}", value))
    return sorted(name.decode() for name in found)


def called_with(name: str, is_wanted: Callable[[str], bool] = bool) -> list[str]:
    """Return the literal first arguments of all calls of a name."""
    return sorted(text for called, text in _found()[1] if called == name and is_wanted(text))


def words_of_modules(modules: Iterator[ModuleType]) -> list[str]:
    """Return the words that modules use as keys: of literals, of look-ups, and as arguments."""
    trees = [ast.parse(Path(str(module.__file__)).read_bytes()) for module in set(modules)]
    found = {word for tree in trees for node in ast.walk(tree) for word in _keys(node)}
    return sorted(word for word in found if _WORD.match(word))


def _values(nodes: list[ast.AST]) -> Iterator[str | bytes]:
    """Yield texts and bytes, but for docstrings and lists of exported names."""
    skipped = {id(part) for node in nodes if _is_prose(node) for part in ast.walk(node)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in skipped:
            yield node.value


def _is_prose(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    targets = node.targets if isinstance(node, ast.Assign) else ()
    return any(isinstance(one, ast.Name) and one.id in {"__all__", "__slots__"} for one in targets)


def _calls(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield from ((node.func.id, text) for text in _texts(*node.args[:1]))


def _keys(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Dict():
            yield from _texts(*node.keys)
        case ast.Subscript():
            yield from _texts(node.slice)
        case ast.Call():
            yield from _texts(*node.args)
        case ast.Compare():
            yield from _texts(node.left)


def _texts(*nodes: ast.expr | None) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
