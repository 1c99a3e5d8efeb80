"""`ambermq docs`: the pages of docs/, which the package holds."""

import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import click

import ambermq
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import list_output_option, print_line, print_rows

__all__ = ["docs"]

_SUFFIX: Final = ".md"


@click.command(epilog="Example: ambermq docs durability")
@click.argument("page", required=False)
@click.option("--path", "shows_path", is_flag=True, help="Print the path of the page's file alone.")
@list_output_option
def docs(page: str | None, *, shows_path: bool, output: str) -> None:
    """Print a PAGE of the documentation, or list the pages.

    A terminal gets the page formatted; a pipe gets its Markdown.
    """
    pages = _pages()
    if page is None:
        rows = [{"page": name, "title": _title(path)} for name, path in pages.items()]
        print_rows(rows, ("page", "title"), output)
        return
    path = pages.get(page.removesuffix(_SUFFIX))
    if path is None:
        near = get_close_matches(page, pages, n=3) or ["index"]
        raise ToolError(
            "no such page",
            where=f"ambermq docs {page}",
            expected=f"one of {', '.join(near)}",
            advice="`ambermq docs` lists all pages",
            code=ExitCode.NOT_FOUND,
        )
    if shows_path:
        print_line(str(path))
    else:
        _print_page(path.read_text(encoding="utf-8"))


def _pages() -> dict[str, Path]:
    """Return the pages by name: `durability`, `decisions/0001-one-log-one-order`."""
    directory = Path(ambermq.__file__).parent / "docs"
    paths = sorted(directory.rglob(f"*{_SUFFIX}"))
    return {path.relative_to(directory).as_posix().removesuffix(_SUFFIX): path for path in paths}


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").rstrip()


def _print_page(text: str) -> None:
    if not sys.stdout.isatty():
        for line in text.splitlines():
            print_line(line)
        return
    from rich.console import Console  # noqa: PLC0415 - a terminal alone needs it
    from rich.markdown import Markdown  # noqa: PLC0415

    Console().print(Markdown(text))
