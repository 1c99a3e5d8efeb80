"""Every page speaks of what exists, and everything that exists is on a page."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from ambermq.tools.cli import main
from tests.docs.pages import PAGES, ROOT, text_of
from tests.tools.tree import children

_CODE = re.compile(r"`([^`\n]+)`")
_SHELL = re.compile(r"^(?:    )?\$ (.*)$", re.MULTILINE)


def _command_lines(page: str) -> Iterator[list[str]]:
    """Yield the words of every `ambermq ...` on a page, up to a pipe or a redirection."""
    text = text_of(page)
    for code in [*_CODE.findall(text), *_SHELL.findall(text)]:
        words = shlex.split(code) if code.startswith("ambermq ") else []
        if words:
            yield words[1 : words.index("|") if "|" in words else None]


def _resolved(words: list[str]) -> tuple[str, click.Command, list[str]]:
    """Return the command that the words name, and what follows it."""
    command: click.Command = main
    path = "ambermq"
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        below = children(command)
        assert words[0] in below, f"{path} {words[0]}"
        path, command, words = f"{path} {words[0]}", below[words[0]], words[1:]
    return path, command, words


def _options(command: click.Command) -> set[str]:
    return {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}


def _leaves(command: click.Command, path: str) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name, below in children(command).items():
            yield from _leaves(below, f"{path} {name}")
    else:
        yield path


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_options_exist(page: str) -> None:
    """Whatever a page writes behind `ambermq` is a command with those options."""
    for words in _command_lines(page):
        path, command, rest = _resolved(words)
        for word in rest:
            if word.startswith("--"):
                assert word in _options(command), f"{path} {word}"


def test_every_command_is_on_its_page() -> None:
    """docs/commands.md names each command of the tree."""
    named = {_resolved(words)[0] for words in _command_lines("docs/commands.md")}
    assert set(_leaves(main, "ambermq")) <= named


@pytest.mark.parametrize("page", PAGES)
def test_options_named_alone_exist_somewhere(page: str) -> None:
    """An option in a sentence belongs to some command."""
    known = {"--version"}
    commands: list[click.Command] = [main]
    while commands:
        command = commands.pop()
        known |= _options(command)
        commands += children(command).values()
    named = {word for code in _CODE.findall(text_of(page)) if code.startswith("--") for word in code.split()[:1]}
    assert named <= known


@pytest.mark.parametrize("page", PAGES)
def test_targets_of_make_exist(page: str) -> None:
    """`make WORD` is a target of the Makefile."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {code.split()[1] for code in _CODE.findall(text_of(page)) if code.startswith("make ")}
    assert named <= targets


def test_files_that_the_architecture_names_exist() -> None:
    """A file named in ARCHITECTURE.md lies in one of the packages."""
    paths = [*(ROOT / "bench").rglob("*.py"), *(ROOT / "ambermq").rglob("*.py")]
    there = {path.relative_to(ROOT).as_posix().removeprefix("ambermq/") for path in paths}
    names = {path.rpartition("/")[2] for path in there}
    for named in re.findall(r"[\w/]+\.py\b", text_of("ARCHITECTURE.md")):
        assert named in (there if "/" in named else names), named


def test_the_way_of_one_message_names_what_is_there() -> None:
    """What each line of ARCHITECTURE.md's drawing names first is defined in the file beside it."""
    drawing = text_of("ARCHITECTURE.md").partition("## The way of one message\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^ {4}.{14}([\w.]+).* ([\w/]+\.py) ", drawing, re.MULTILINE)
    assert len(lines) == len(re.findall(r"^ {4}", drawing, re.MULTILINE)) > 0
    for named, file in lines:
        defined = re.findall(r"^ *(?:class|def) (\w+)", (ROOT / "ambermq" / file).read_text(), re.MULTILINE)
        assert set(named.split(".")) <= set(defined), (named, file)


def test_extras_are_all_explained() -> None:
    """README.md says what each extra adds."""
    text = (ROOT / "pyproject.toml").read_text()
    table = text.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    extras = set(re.findall(r"^(\w+) = \[", table, re.MULTILINE))
    assert extras
    assert extras == {extra for extra in extras if f"| `{extra}` |" in text_of("README.md")}
