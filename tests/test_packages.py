"""Each package says what it is, is small, and lists only what is true."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
MODULES_MAX: Final = 15
"""Of a package, `__init__.py` aside."""
LINES: Final = range(3, 13)
"""Of a package's docstring up to `How to`, which may follow it."""
FACES: Final = {"ambermq/engine/commands", "ambermq/engine/events"}
"""Packages that export what their modules define: a command or an event is imported without the name of its module."""

PACKAGES: Final = [
    path.parent.relative_to(ROOT).as_posix()
    for root in ("ambermq", "bench", "tests")
    for path in sorted((ROOT / root).rglob("__init__.py"))
]
DOCUMENTED: Final = [package for package in PACKAGES if not package.startswith("tests") and package != "ambermq"]


def modules(package: str) -> list[Path]:
    """Return the modules of a package."""
    return sorted(path for path in (ROOT / package).glob("*.py") if path.name != "__init__.py")


def parsed(path: Path) -> ast.Module:
    """Return the syntax of a file."""
    return ast.parse(path.read_text())


def docstring(package: str) -> str:
    """Return the docstring of a package."""
    return ast.get_docstring(parsed(ROOT / package / "__init__.py")) or ""


def listed(package: str, label: str) -> set[str]:
    """Return the words after a label of a package's docstring."""
    found = re.search(rf"^{label}: (.*?)\.$", docstring(package), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{package}: no line `{label}: ...`"
    return set(re.findall(r"[\w/*]+", found[1]))


def imports(package: str) -> Iterator[str]:
    """Yield the folders and modules of ours that the modules of a package import, lazily or for types alone too."""
    for path in modules(package):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.replace(".", "/")
            elif isinstance(node, ast.Import):
                yield from (alias.name.replace(".", "/") for alias in node.names)


def names(package: str) -> Iterator[str]:
    """Yield what the modules of a package define."""
    for path in modules(package):
        for node in parsed(path).body:
            match node:
                case ast.ClassDef() | ast.FunctionDef():
                    yield node.name
                case ast.ImportFrom(names=[ast.alias(asname=str(name))]):
                    yield name
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                    yield name


@pytest.mark.parametrize("root", ["ambermq", "bench", "tests"])
def test_no_package_has_more_modules_than_one_looks_over(root: str) -> None:
    """A larger package is split."""
    folders = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / root).rglob("*.py")}
    assert [folder for folder in sorted(folders) if len(modules(folder)) > MODULES_MAX] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_opens_with_one_sentence(package: str) -> None:
    """Its docstring does; those of the package and of the bench go on to the rules, and stay short."""
    first, *rest = docstring(package).partition("\n\nHow to ")[0].splitlines() or [""]
    assert first.endswith(".")
    assert first[0].isupper() or first[0] == "`"
    if not package.startswith("tests"):
        assert len([first, *rest]) in LINES


@pytest.mark.parametrize("package", DOCUMENTED)
def test_a_package_imports_what_it_says(package: str) -> None:
    """`Imports:` names packages, as `log`, `log/*` also those below it; the package itself need not be listed."""
    said = listed(package, "Imports")
    allowed = {package} | {name if name.startswith(("ambermq", "bench")) else f"ambermq/{name}" for name in said}
    whole = tuple(name.removesuffix("*") for name in allowed if name.endswith("/*"))
    found = {name for name in imports(package) if name.split("/")[0] in {"ambermq", "bench"}}
    packages = {name if (ROOT / name).is_dir() else name.rpartition("/")[0] for name in found}
    assert sorted(name for name in packages if name not in allowed and not f"{name}/".startswith(whole)) == []


@pytest.mark.parametrize("package", DOCUMENTED)
def test_a_package_has_the_names_that_it_lists(package: str) -> None:
    """`Names:` are defined in its modules."""
    assert sorted(listed(package, "Names") - set(names(package))) == []


def test_no_package_has_names_of_its_own() -> None:
    """A module is imported by its own name: only the packages in FACES export names of others."""
    bodies = {
        package: parsed(ROOT / package / "__init__.py").body for package in PACKAGES if not package.startswith("tests")
    }
    imported = ast.ImportFrom | ast.Import
    assert {package for package, body in bodies.items() if any(isinstance(node, imported) for node in body)} == FACES
