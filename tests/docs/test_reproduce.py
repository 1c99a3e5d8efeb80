"""docs/proxy.md and docs/scripts.md: their examples run, and their tables are those of the code."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.cli import main
from ambermq.tools.proxy.recording import Kind
from ambermq.tools.scripts.grammar import OPTIONS, OUTCOMES, parse_script
from tests.docs.pages import blocks, rows, steps, text_of
from tests.tools.proxy.conftest import ChildProxy

_DIFFERS = re.compile(r"\d[\d:.TZ-]*|0x[0-9a-f]+")


def test_the_script_of_the_page_runs(tmp_path: Path) -> None:
    """Word for word."""
    (text,) = blocks("docs/scripts.md", "text")
    path = tmp_path / "page.script"
    path.write_text(text)
    result = CliRunner().invoke(main, ["script", "run", str(path)])
    assert result.exit_code == 0, result.stderr


def test_every_option_of_a_statement_is_listed() -> None:
    """The table has the options that the grammar takes, `within` aside; and its statements parse."""
    listed: dict[str, set[str]] = {}
    for statement, options, _ in rows("docs/scripts.md", "## Statements"):
        for shown in re.findall(r"`([^`]+)`", statement):
            words = shown.replace("ADDRESS", "q").replace("BODY...", "m").replace("PATTERN...", "m")
            if words.split()[0] in {"repeat", "random", "or", "end"}:
                continue
            (parsed,) = parse_script(words.replace("NAME", "open"), "page")
            listed[parsed.kind] = set(re.findall(r"`(\w+)`", options))
    known = {kind: set(options) - {"within"} for kind, options in OPTIONS.items()}
    values = {"any", "copy"}
    assert {kind: listed[kind] - values for kind in known} == known
    assert all(f"`{outcome}`" in text_of("docs/scripts.md") for outcome in OUTCOMES)


def test_the_kinds_of_records_are_listed() -> None:
    """With their numbers."""
    for kind in Kind:
        assert f"{kind.value} {kind.name}" in text_of("docs/proxy.md")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """What the page records: one message, sent through the proxy."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    proxy = ChildProxy(tmp_path / "session.rec", broker.url)
    result = CliRunner().invoke(main, ["send", "orders", "hello", "--url", proxy.url])
    assert result.exit_code == 0, result.stderr
    proxy.end()
    broker.kill()
    return proxy.path


def test_the_trace_and_the_replay_of_the_page(recording: Path, tmp_path: Path) -> None:
    """They print what the page shows, but for times and numbers."""
    _, printed, replayed = steps("docs/proxy.md")
    fresh = ChildBroker(tmp_path / "fresh")
    fresh.start()
    try:
        for command, shown in (printed, replayed):
            words = shlex.split(command.replace("session.rec", str(recording)))[1:]
            words = [fresh.url if word.startswith("amqp://") else word for word in words]
            result = CliRunner().invoke(main, words)
            assert result.exit_code == 0, result.stderr
            assert _DIFFERS.sub("N", result.stdout) == _DIFFERS.sub("N", shown)
    finally:
        fresh.kill()
