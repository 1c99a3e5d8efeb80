"""docs/vhosts.md shows what its commands print, refusals included, run against a broker as the page tells of it."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.cli import main
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from tests.docs.pages import text_of

_DIFFERS = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z|~[0-9a-f]{8}|ambermq-\d+-[0-9a-f]+|amqp://[\d.:]+|unix:/\S*?/data/broker\.sock|\d[\d.,]*"
)
_BEFORE = (
    "send orders coffee --count 1000",
    "send invoices tea --count 20",
    "snapshot export nightly nightly.backup --take",
)
"""What the broker holds when the page begins."""


def _examples() -> Iterator[tuple[str, str]]:
    """Yield the commands of the page, and what it shows below each."""
    for block in re.findall(r"(?:^ {4}.*\n)+", text_of("docs/vhosts.md"), re.MULTILINE):
        for step in re.split(r"^ {4}\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = step.partition("\n")
            yield command.removeprefix("ambermq "), shown


def _told(text: str) -> list[list[str]]:
    """Return the words of each line: times, numbers and names of processes differ from run to run."""
    return [_DIFFERS.sub("N", line).split() for line in text.splitlines()]


def _run(line: str) -> str:
    """Run a command on the directory ./data; return what it prints, and a refusal where it is refused."""
    words = shlex.split(line)
    result = CliRunner().invoke(main, [*words, *([] if "--data" in words else ["--data", "./data"])])
    return result.stdout if result.exit_code == 0 else result.stderr


def test_the_examples_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command prints the same words in the same order; a client is connected when a deletion is refused."""
    for name in ("AMBERMQ_URL", "AMBERMQ_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    broker = ChildBroker(Path("data"))
    broker.start()
    client: LinkClient | None = None
    try:
        for line in _BEFORE:
            assert "error" not in _run(line)
        examples = list(_examples())
        assert len(examples) > 10
        for command, shown in examples:
            if command.startswith("vhost delete") and client is None:
                client = LinkClient.connect(BrokerUrl.parse(f"{broker.url}/vhost:rehearsal"))
            assert _told(_run(command)) == _told(shown), command
    finally:
        broker.kill()
        if client is not None:
            client.close()
