"""What mutmut has found so far, read from its directory `mutants/`, and the explanations of survivors."""

import difflib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
SURVIVORS: Final = Path(__file__).with_name("survivors.toml")
_SURVIVED: Final = {0, 5, 33}
"""Exit codes of mutmut: the tests passed, or there are none."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One mutant that was tried."""

    name: str
    """The name that mutmut knows it by; its number changes with the function."""
    module: str
    function: str
    """The function with its class and module: `ambermq.engine.loop.schedule.Schedule.due`."""
    change: str
    """The changed line and what it became: `if a < b: => if a <= b:`."""
    is_killed: bool


def verdicts(directory: Path = ROOT / "mutants") -> Iterator[Verdict]:
    """Yield the mutants that were tried."""
    for meta in sorted(directory.rglob("*.py.meta")):
        path = meta.with_suffix("")
        codes = {name: code for name, code in _json(meta)["exit_code_by_key"].items() if code is not None}
        if codes:
            lines = path.read_text(encoding="utf-8").splitlines()
            spans = _json(path.with_name(f"{path.name}.spans"))["spans"]
            yield from (_verdict(name, code, lines, spans) for name, code in codes.items())


def forget_survivors(directory: Path = ROOT / "mutants") -> None:
    """Forget the results of survivors, so that the next run tries them again: tests may find them now."""
    for meta in directory.rglob("*.py.meta"):
        results = _json(meta)
        codes = results["exit_code_by_key"]
        codes.update({name: None for name, code in codes.items() if code in _SURVIVED})
        meta.write_text(json.dumps(results), encoding="utf-8")


def explanations(path: Path = SURVIVORS) -> dict[str, dict[str, str]]:
    """Return why each survivor is no fault: by function, then by change."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _verdict(name: str, code: int, lines: list[str], spans: dict[str, list[int]]) -> Verdict:
    module, _, mutant = name.rpartition(".")
    mangled = mutant.partition("__mutmut_")[0]
    original, changed = (_source(lines, spans[key], key) for key in (f"{mangled}__mutmut_orig", mutant))
    # mutmut names x_function and xǁClassǁmethod
    function = mangled.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
    return Verdict(name, module, f"{module}.{function}", change_of(original, changed), code not in _SURVIVED)


def _source(lines: list[str], span: list[int], name: str) -> list[str]:
    """Return a function without the name that mutmut gives to it."""
    return [line.replace(name, "") for line in lines[span[0] - 1 : span[1]]]


def change_of(original: list[str], changed: list[str]) -> str:
    """Return the lines that differ, as one line."""
    diff = list(difflib.ndiff(original, changed))
    before, after = (" ".join(line[2:].strip() for line in diff if line.startswith(sign)) for sign in ("- ", "+ "))
    return f"{before} => {after}"


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))
