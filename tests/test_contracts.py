"""The contracts of pyproject.toml hold what they say: what is planted against them is found, by the contract's name."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parent.parent
CONTRACTS: Final[list[dict[str, Any]]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
CHAINS: Final = "pure along every chain of imports: no clock, chance, file, socket or thread"
ALONE: Final = "pure by themselves: no clock, chance, file, socket or thread"
NO_CYCLES: Final = "no cycles between siblings"

UPWARD: Final = {
    "ambermq/log/errors.py": ("ambermq.engine.errors", "packages: one way down"),
    "ambermq/log/format/record.py": ("ambermq.log.write.draft", "log: layers"),
    "ambermq/engine/address.py": ("ambermq.engine.loop.durable_loop", "engine: layers"),
    "ambermq/engine/model/muxer.py": ("ambermq.engine.model.queue", "engine/model: order of modules"),
    "ambermq/protocol/server_limits.py": ("ambermq.protocol.server.server", "protocol: layers"),
    "ambermq/protocol/amqp10/errors.py": ("ambermq.protocol.amqp10.link.link", "amqp10: layers"),
    "ambermq/protocol/gateway/opening/container_ids.py": ("ambermq.protocol.gateway.gateway", "gateway: layers"),
    "ambermq/tools/terminal/sizes.py": ("ambermq.tools.messages.publisher", "tools: layers"),
    "ambermq/tools/wiring/rows.py": ("ambermq.tools.wiring.client", NO_CYCLES),
    "ambermq/tools/cli.py": ("bench.load", "bench above the package"),
    "bench/interpreter.py": ("bench.report", "bench: layers"),
}
"""A module, what it imports against its layer, and the contract that says so."""

TYPE_ONLY: Final = {
    "ambermq/protocol/amqp10/events.py": ("ambermq.protocol.amqp10.link.link", "amqp10: layers"),
    "ambermq/protocol/amqp10/session/dispositions.py": (
        "ambermq.protocol.amqp10.session.session",
        "protocol/amqp10/session: order of modules",
    ),
    "ambermq/protocol/gateway/consumers/consumer_link.py": (
        "ambermq.protocol.gateway.connection_gateway",
        "gateway: layers",
    ),
    "ambermq/protocol/management/vhosts.py": ("ambermq.protocol.gateway.gateway", "protocol: layers"),
    "ambermq/protocol/server/vhosts/runner.py": (
        "ambermq.protocol.server.server",
        "protocol/server: order of modules",
    ),
    "ambermq/engine/events/event_type.py": ("ambermq.engine.events.registry", NO_CYCLES),
    "ambermq/engine/errors.py": ("ambermq.tools.terminal.errors", "packages: one way down"),
}
"""As UPWARD, below TYPE_CHECKING: among them one arrow of each circle that protocol/ once had."""

NEWCOMERS: Final = {
    "ambermq": "packages: one way down",
    "ambermq/engine": "engine: layers",
    "ambermq/log": "log: layers",
    "ambermq/protocol": "protocol: layers",
    "ambermq/protocol/amqp10": "amqp10: layers",
    "ambermq/protocol/gateway": "gateway: layers",
    "ambermq/tools": "tools: layers",
    "bench": "bench: layers",
}
"""Folders in which a new package has no layer yet, and the contract that says so."""


def packages(root: str) -> Iterator[str]:
    """Yield a package and those in it, by name."""
    for path in sorted((ROOT / root).rglob("__init__.py")):
        yield path.parent.relative_to(ROOT).as_posix().replace("/", ".")


def module_of(file: str) -> str:
    """Return the name of the module in a file."""
    return file.removesuffix(".py").replace("/", ".")


def a_file_of(source: str) -> Iterator[str]:
    """Yield a file of a module or of each package in it that has modules."""
    path = ROOT / source.replace(".", "/")
    if not path.is_dir():
        yield path.with_suffix(".py").relative_to(ROOT).as_posix()
        return
    for package in packages(source.replace(".", "/")):
        files = sorted((ROOT / package.replace(".", "/")).glob("[a-z]*.py"))
        yield from (file.relative_to(ROOT).as_posix() for file in files[:1])


def reports(directory: Path, planted: Mapping[str, str]) -> dict[str, str]:
    """Return what is said of each broken contract where these lines end these files of a copy of the project."""
    for package in ("ambermq", "bench"):
        shutil.copytree(ROOT / package, directory / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", directory)
    for file, line in planted.items():
        path = directory / file
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as appended:
            appended.write(f"\n{line}\n")
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"]
    run = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == bool(planted), run.stdout + run.stderr
    told = run.stdout.partition("\nBroken contracts\n")[2]
    names = re.findall(r"^(.+) BROKEN$", run.stdout, re.MULTILINE)
    starts = {told.index(f"\n{name}\n---"): name for name in names}
    ends = [*sorted(starts), len(told)][1:]
    return {starts[start]: " ".join(told[start:end].split()) for start, end in zip(sorted(starts), ends, strict=True)}


def assert_reported(found: Mapping[str, str], plants: Mapping[str, tuple[str, str]]) -> None:
    """Check that each planted import stands in the report of its contract; a cycle names only its package."""
    for file, (imported, name) in plants.items():
        module = module_of(file)
        told = f"in {module.rpartition('.')[0]}." if name == NO_CYCLES else f"{module} -> {imported} ("
        assert told in found.get(name, ""), (file, name)


def test_the_project_breaks_no_contract(tmp_path: Path) -> None:
    """As it stands, nothing is reported."""
    assert reports(tmp_path, {}) == {}


@pytest.mark.parametrize("name", [CHAINS, ALONE])
def test_a_clock_in_any_pure_package_is_reported(tmp_path: Path, name: str) -> None:
    """`import time` in one module of each pure package breaks the contract, and each is named."""
    (sources,) = (one["source_modules"] for one in CONTRACTS if one["name"] == name)
    files = [file for source in sources for file in a_file_of(source)]
    report = reports(tmp_path, dict.fromkeys(files, "import time"))[name]
    assert [file for file in files if f"{module_of(file)} -> time (" not in report] == []
    assert [source for source in sources if f"{source} is not allowed to import time:" not in report] == []


def test_an_upward_import_is_reported(tmp_path: Path) -> None:
    """In each layer, and between the modules of a package."""
    assert_reported(reports(tmp_path, {file: f"import {plant}" for file, (plant, _) in UPWARD.items()}), UPWARD)


def test_an_upward_import_for_types_alone_is_reported(tmp_path: Path) -> None:
    """TYPE_CHECKING excuses nothing."""
    block = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import {}"
    assert_reported(reports(tmp_path, {file: block.format(plant) for file, (plant, _) in TYPE_ONLY.items()}), TYPE_ONLY)


def test_a_package_without_a_layer_is_reported(tmp_path: Path) -> None:
    """A new package breaks the contract of the folder that it lies in."""
    found = reports(tmp_path, dict.fromkeys((f"{folder}/newcomer/__init__.py" for folder in NEWCOMERS), '"""New."""'))
    assert {name for name, told in found.items() if "newcomer" in told} == set(NEWCOMERS.values())


def test_every_package_has_its_layer() -> None:
    """Each package of ambermq is a layer of its folder, in a contract that is exhaustive."""
    layers = {
        f"{container}.{name}"
        for one in CONTRACTS
        if one.get("exhaustive")
        for container in one["containers"]
        for layer in one["layers"]
        for name in re.findall(r"\w+", layer)
    }
    assert [name for root in ("ambermq", "bench") for name in packages(root) if name not in {*layers, root}] == []


def test_all_layers_are_exhaustive() -> None:
    """But for the two roots, beside which there is nothing."""
    layers = [one for one in CONTRACTS if one["type"] == "layers"]
    assert [one["name"] for one in layers if not one.get("exhaustive")] == ["bench above the package"]
