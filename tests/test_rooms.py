"""Each room of the house, a package, says what it is, is small, and tells no more than holds."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
MODULES_MAX: Final = 15
"""Of a room, `__init__.py` aside."""
LINES: Final = range(3, 13)
"""Of a room's docstring, as far as it is about the room; what one does there may follow behind `How to`."""
FACES: Final = {"ambermq/engine/events"}
"""Rooms that export what their modules define: an event is imported without its family, which is a file's business."""

ROOMS: Final = [
    path.parent.relative_to(ROOT).as_posix()
    for root in ("ambermq", "bench", "tests")
    for path in sorted((ROOT / root).rglob("__init__.py"))
]
TOLD: Final = [room for room in ROOMS if not room.startswith("tests") and room != "ambermq"]


def modules(room: str) -> list[Path]:
    """Return the modules of a room."""
    return sorted(path for path in (ROOT / room).glob("*.py") if path.name != "__init__.py")


def parsed(path: Path) -> ast.Module:
    """Return the syntax of a file."""
    return ast.parse(path.read_text())


def docstring(room: str) -> str:
    """Return what a room says of itself."""
    return ast.get_docstring(parsed(ROOT / room / "__init__.py")) or ""


def told(room: str, label: str) -> set[str]:
    """Return the words behind a label of a room's docstring."""
    found = re.search(rf"^{label}: (.*?)\.$", docstring(room), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{room}: no line `{label}: ...`"
    return set(re.findall(r"[\w/*]+", found[1]))


def imports(room: str) -> Iterator[str]:
    """Yield the folders and modules of ours that the modules of a room import, lazily or for types alone too."""
    for path in modules(room):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.replace(".", "/")
            elif isinstance(node, ast.Import):
                yield from (alias.name.replace(".", "/") for alias in node.names)


def names(room: str) -> Iterator[str]:
    """Yield what the modules of a room define."""
    for path in modules(room):
        for node in parsed(path).body:
            match node:
                case ast.ClassDef() | ast.FunctionDef():
                    yield node.name
                case ast.ImportFrom(names=[ast.alias(asname=str(name))]):
                    yield name
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                    yield name


@pytest.mark.parametrize("root", ["ambermq", "bench", "tests"])
def test_no_room_has_more_modules_than_one_looks_over(root: str) -> None:
    """More are two rooms."""
    folders = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / root).rglob("*.py")}
    assert [folder for folder in sorted(folders) if len(modules(folder)) > MODULES_MAX] == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_opens_with_one_sentence(room: str) -> None:
    """Its docstring does; those of the package and of the bench go on to the rules, and stay short."""
    first, *rest = docstring(room).partition("\n\nHow to ")[0].splitlines() or [""]
    assert first.endswith(".")
    assert first[0].isupper() or first[0] == "`"
    if not room.startswith("tests"):
        assert len([first, *rest]) in LINES


@pytest.mark.parametrize("room", TOLD)
def test_a_room_imports_what_it_says(room: str) -> None:
    """`Imports:` names rooms, as `log`, and with `log/*` those in one as well; the room itself need not be named."""
    said = told(room, "Imports")
    allowed = {room} | {name if name.startswith(("ambermq", "bench")) else f"ambermq/{name}" for name in said}
    whole = tuple(name.removesuffix("*") for name in allowed if name.endswith("/*"))
    found = {name for name in imports(room) if name.split("/")[0] in {"ambermq", "bench"}}
    rooms = {name if (ROOT / name).is_dir() else name.rpartition("/")[0] for name in found}
    assert sorted(name for name in rooms if name not in allowed and not f"{name}/".startswith(whole)) == []


@pytest.mark.parametrize("room", TOLD)
def test_a_room_has_the_names_that_it_tells(room: str) -> None:
    """`Names:` are defined in its modules."""
    assert sorted(told(room, "Names") - set(names(room))) == []


def test_no_room_has_names_of_its_own() -> None:
    """A module is imported by its own name: nothing is exported again, but by a few faces."""
    bodies = {room: parsed(ROOT / room / "__init__.py").body for room in ROOMS if not room.startswith("tests")}
    imported = ast.ImportFrom | ast.Import
    assert {room for room, body in bodies.items() if any(isinstance(node, imported) for node in body)} == FACES
