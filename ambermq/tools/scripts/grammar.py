"""The language of scripts: a statement a line, blocks that `end` closes, `#` for comments.

    broker start
    alice connect
    alice attach sender out to orders
    alice send out "message {n}" count=10
    alice expect outcome out accepted count=10

Rule 1. The grammar knows the verbs and the order of their words. OPTIONS knows the options of each verb.
Rule 2. A mistake is found before the first statement runs, with its line and column.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["OPTIONS", "OUTCOMES", "Statement", "parse_script"]

OUTCOMES: Final = ("accepted", "rejected", "released", "modified")

_GRAMMAR: Final = r"""
start: _NL* block
block: (statement _NL+)*
?statement: "broker" ACTION value*                               -> broker
    | "sleep" value                                              -> sleep
    | "repeat" value _NL+ block "end"                            -> repeat
    | "random" _NL+ block ("or" _NL+ block)+ "end"               -> random
    | NAME "connect" option*                                     -> connect
    | NAME "attach" "sender" NAME "to" value option*             -> attach_sender
    | NAME "attach" "receiver" NAME "from" value option*         -> attach_receiver
    | NAME "credit" NAME value option*                           -> credit
    | NAME "send" NAME value+ option*                            -> send
    | NAME "expect" "messages" NAME value* option*               -> expect_messages
    | NAME "expect" "message" NAME value option*                 -> expect_messages
    | NAME "expect" "outcome" NAME OUTCOME option*               -> expect_outcome
    | NAME "expect" "frame" value option*                        -> expect_frame
    | NAME "expect" "nothing" NAME option*                       -> expect_nothing
    | NAME "expect" "closed" option*                             -> expect_closed
    | NAME "settle" NAME OUTCOME option*                         -> settle
    | NAME "detach" NAME option*                                 -> detach
    | NAME "close"                                               -> close
    | NAME "drop"                                                -> drop
option: OPTION value
value: STRING | WORD
ACTION: "start" | "kill" | "stop" | "restart"
OUTCOME: "accepted" | "rejected" | "released" | "modified"
OPTION.2: /[a-z][a-z_.-]*=/
NAME: /[A-Za-z][\w-]*/
STRING: /"(\\.|[^"\\\n])*"/
WORD: /[^\s"=#]+/
_NL: /\r?\n/
%ignore /[ \t]+/
%ignore /#[^\n]*/
"""

OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "connect": frozenset(
        {"container", "frame", "host", "idle", "password", "password_file", "refused", "url", "user", "within"}
    ),
    "attach_sender": frozenset({"name", "refused", "settled", "within"}),
    "attach_receiver": frozenset({"credit", "mode", "name", "refused", "second", "within"}),
    "credit": frozenset({"drain"}),
    "send": frozenset({"count", "durable", "id", "size", "subject", "within"}),
    "expect_messages": frozenset({"count", "delivery_count", "id", "order", "subject", "within"}),
    "expect_outcome": frozenset({"count", "error", "within"}),
    "expect_nothing": frozenset({"within"}),
    "expect_closed": frozenset({"error", "within"}),
    "settle": frozenset({"count", "failed", "undeliverable"}),
    "detach": frozenset({"closed"}),
}
"""The options of each statement; those of `expect frame` are the fields of the frame, and `within`."""

_WORDS: Final = {
    "_NL": "the end of the line",
    "OPTION": "an option",
    "NAME": "a name",
    "STRING": "a text",
    "WORD": "a word",
    "ACTION": "start, stop, kill or restart",
    "OUTCOME": ", ".join(OUTCOMES),
    "$END": "the end of the file",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a script."""

    kind: str
    """The name of its rule in the grammar."""
    line: int
    words: tuple[str, ...]
    """Its names and values in order, the client first."""
    options: dict[str, str] = field(default_factory=dict)
    blocks: tuple[tuple["Statement", ...], ...] = ()
    """The blocks of `repeat` and `random`."""


def parse_script(text: str, file: str) -> tuple[Statement, ...]:
    """Return the statements of a script; raise ToolError for the first mistake."""
    try:
        tree = _parser().parse(text + "\n")
    except UnexpectedInput as error:
        raise _mistake(error, text, file) from error
    statements: tuple[Statement, ...] = _Statements().transform(tree)
    _check_options(statements, file)
    return statements


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", propagate_positions=True)


class _Statements(Transformer[Token, Any]):
    """Makes statements of a tree."""

    def start(self, children: list[Any]) -> Any:
        return children[0]

    def block(self, children: list[Any]) -> tuple[Statement, ...]:
        return tuple(children)

    def value(self, children: list[Token]) -> str:
        (token,) = children
        return _unquoted(token) if token.type == "STRING" else str(token)

    def option(self, children: list[Any]) -> tuple[str, str]:
        name, value = children
        return name.removesuffix("="), value

    @v_args(tree=True)
    def __default__(self, data: Any, children: list[Any], meta: Any) -> Statement:
        options = [child for child in children if type(child) is tuple and child and isinstance(child[0], str)]
        blocks = tuple(child for child in children if type(child) is tuple and child not in options)
        words = tuple(str(child) for child in children if isinstance(child, str))
        return Statement(str(data), meta.line, words, dict(options), blocks)


def _unquoted(token: str) -> str:
    return token[1:-1].replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")


def _check_options(statements: tuple[Statement, ...], file: str) -> None:
    for statement in statements:
        for block in statement.blocks:
            _check_options(block, file)
        known = OPTIONS.get(statement.kind, frozenset())
        if statement.kind == "expect_frame":
            continue
        for name in statement.options:
            if name not in known:
                raise ToolError(
                    f"no option {name!r} of {statement.kind.replace('_', ' ')}",
                    where=f"{file}:{statement.line}",
                    expected=", ".join(sorted(known)),
                    code=ExitCode.USAGE,
                )


def _mistake(error: UnexpectedInput, text: str, file: str) -> ToolError:
    lines = text.splitlines()
    line = error.line if 0 < error.line <= len(lines) else len(lines)
    found = repr(lines[line - 1].strip()) if lines else "an empty file"
    expected: set[str] = set()
    match error:
        case UnexpectedToken():
            expected = set(error.expected)
            found = "the end of the file" if error.token.type == "$END" else _shown(error.token)
        case UnexpectedCharacters():
            expected = set(error.allowed or ())
        case UnexpectedEOF():
            expected = set(error.expected)
    wanted = sorted({_WORDS.get(name, name.lower()) for name in expected})
    where = f"{file}:{line}" + (f":{error.column}" if error.column > 0 else "")
    return ToolError("not a statement", where=where, expected=" or ".join(wanted), found=found, code=ExitCode.USAGE)


def _shown(token: Token) -> str:
    return "the end of the line" if token.type == "_NL" else repr(str(token))
