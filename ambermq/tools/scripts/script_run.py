"""The run of a script: its clients, its broker, its variables and its chance.

Rule 1. Every wait has a deadline, and serves all clients.
Rule 2. A failed statement raises a ToolError with file and line; the run then ends all that it began.
"""

import random
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self, TypeVar

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.scripts.grammar import Statement
from ambermq.tools.scripts.patterns import duration_s, filled
from ambermq.tools.scripts.script_client import ScriptClient, ScriptLink, error_text, pump
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import printable

__all__ = ["STATEMENTS_MAX", "ScriptRun", "StatementFailed"]

STATEMENTS_MAX: Final = 1_000_000
"""The statements that a run executes at most: a repeat within a repeat may be long by mistake."""
WAIT_SECONDS: Final = 5.0
"""The timeout of a statement without `within`."""

_Found = TypeVar("_Found")


class StatementFailed(Exception):
    """A statement did not find what it expects."""

    def __init__(self, what: str, *, expected: str = "", found: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.expected = expected
        self.found = found


@dataclass(slots=True)
class ScriptRun:
    """The state of one run; a `with` block ends its clients and its broker."""

    file: str
    seed: int
    url: Callable[[], str]
    """The broker of the command line, for a script that starts none."""
    statements: Mapping[str, Callable[["ScriptRun", Statement], None]]
    """What each kind of statement does."""
    clients: dict[str, ScriptClient] = field(default_factory=dict)
    broker: ChildBroker | None = None
    count: int = 0
    """The statements that were executed."""
    _variables: dict[str, object] = field(default_factory=dict)
    _directory: tempfile.TemporaryDirectory[str] | None = None
    _random: random.Random = field(default_factory=random.Random)

    def __enter__(self) -> Self:
        self._random.seed(self.seed)
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients.values():
            client.close_socket()
        if self.broker is not None:
            self.broker.kill()
        if self._directory is not None:
            self._directory.cleanup()

    def run(self, block: tuple[Statement, ...]) -> None:
        """Run the statements of a block; raise ToolError for the first that fails."""
        for statement in block:
            self.count += 1
            if self.count > STATEMENTS_MAX:
                raise self._error(statement, f"more than {STATEMENTS_MAX} statements were executed")
            try:
                self._run_one(statement)
            except StatementFailed as failure:
                raise self._error(statement, failure.what, failure.expected, failure.found) from failure
            except ValueError as error:
                raise self._error(statement, str(error), code=ExitCode.USAGE) from error

    def _run_one(self, statement: Statement) -> None:
        match statement.kind:
            case "repeat":
                for turn in range(1, self.number(statement.words[0]) + 1):
                    before = dict(self._variables)
                    self._variables["i"] = turn
                    self.run(statement.blocks[0])
                    self._variables = before
            case "random":
                self.run(self._random.choice(statement.blocks))
            case "sleep":
                until = time.monotonic() + duration_s(self.text(statement.words[0]))
                while (left := until - time.monotonic()) > 0:
                    pump(self.clients.values(), left)
            case kind:
                self.statements[kind](self, statement)

    def _error(
        self, statement: Statement, what: str, expected: str = "", found: str = "", *, code: ExitCode = ExitCode.FAILED
    ) -> ToolError:
        return ToolError(
            what,
            where=f"{self.file}:{statement.line}",
            expected=printable(expected),
            found=printable(found),
            advice=f"the seed of this run is {self.seed}",
            code=code,
        )

    # Values

    def text(self, text: str, **variables: object) -> str:
        """Return a text with its variables."""
        return filled(text, {"random": self._random.randrange(1 << 32), **self._variables, **variables})

    def number(self, text: str) -> int:
        """Return a whole number; raise ValueError for another text."""
        filled_in = self.text(text)
        if not filled_in.isdecimal() or not filled_in.isascii():
            raise ValueError(f"expected a whole number, found {filled_in!r}")
        return int(filled_in)

    # Clients

    def client(self, name: str) -> ScriptClient:
        """Return a connected client; raise StatementFailed if there is none."""
        client = self.clients.get(name)
        if client is None:
            raise StatementFailed(f"client {name} is not connected", expected=f"`{name} connect` before")
        if client.is_closed:
            found = f"the end of its connection: {error_text(client.error)}"
            raise StatementFailed(f"client {name} is not connected", expected="a connection", found=found)
        return client

    def link(self, statement: Statement) -> tuple[ScriptClient, ScriptLink]:
        """Return the client and the link that a statement names; raise StatementFailed if there is none."""
        client = self.client(statement.words[0])
        link = client.links.get(statement.words[1])
        if link is None:
            names = ", ".join(client.links) or "none"
            raise StatementFailed(f"client {statement.words[0]} has no link {statement.words[1]}", found=names)
        return client, link

    def wait(
        self,
        statement: Statement,
        expected: str,
        find: Callable[[], _Found | None],
        found: Callable[[], str] = lambda: "nothing",
    ) -> _Found:
        """Return what `find` finds; raise StatementFailed after the timeout of the statement."""
        seconds = duration_s(self.text(statement.options.get("within", f"{WAIT_SECONDS:g}s")))
        deadline = time.monotonic() + seconds
        while (result := find()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                what = f"the wait of {seconds:g} s is over"
                raise StatementFailed(what, expected=expected, found=found())
            pump(self.clients.values(), left)
        return result

    # The broker

    def target(self, url: str | None) -> BrokerUrl:
        """Return the broker for a connection: that of its option, the script's own, or that of the command line."""
        if url is not None:
            return BrokerUrl.parse(url)
        return BrokerUrl.parse(self.broker.url if self.broker is not None else self.url())

    def own_directory(self) -> Path:
        """Return the directory of the script's broker."""
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="ambermq-script-")
        return Path(self._directory.name) / "data"
