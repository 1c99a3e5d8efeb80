"""The configuration: a TOML text and values of the environment to settings, or to mistakes.

lines that begin with `AMBERMQ_`   variables of the environment, NAME=VALUE
lines that begin with `--set `     assignments
the other lines                    the TOML text
"""

from typing import Final

from ambermq.tools.config.keys import all_keys
from ambermq.tools.config.layers import environment_layer, file_layer, option_layer
from ambermq.tools.config.resolution import resolve
from ambermq.tools.terminal.errors import ToolError
from tests.fuzz.target import Target

_SET: Final = "--set "
_READS_A_FILE: Final = "_FILE"


def run(data: bytes) -> None:
    """Resolve the configuration; each mistake has a text."""
    variables, assignments, text = _parts(data.decode(errors="replace"))
    mistakes: list[ToolError] = []
    layers = [
        file_layer(text, "f", mistakes),
        environment_layer(variables, mistakes),
        option_layer(assignments, {}, mistakes),
    ]
    resolve(layers, mistakes)
    assert all(mistake.message for mistake in mistakes)


def _parts(text: str) -> tuple[dict[str, str], list[str], str]:
    """Return the variables, the assignments and the TOML text of an input; no variable names a file."""
    lines = text.split("\n")
    given = dict(line.partition("=")[::2] for line in lines if line.startswith("AMBERMQ_"))
    variables = {name: value for name, value in given.items() if not name.endswith(_READS_A_FILE)}
    assignments = [line.removeprefix(_SET) for line in lines if line.startswith(_SET)]
    rest = [line for line in lines if not line.startswith(("AMBERMQ_", _SET))]
    return variables, assignments, "\n".join(rest)


def seeds() -> list[bytes]:
    """Return a text with each table, texts with templates, and one of each further source."""
    return [text.encode() for text in (*_TEXTS, *(_line(path) for path in all_keys()))]


def _line(path: str) -> str:
    key = all_keys()[path]
    value = {"true or false": "true", "text": "'x'", "a list of text": "['x']"}.get(key.kind, str(key.range[0]))
    return f"{path} = {value}\n"


_TEXTS: Final = (
    "",
    "engine.auto_create = false\nlog.segment_age_ms_max = 5\nusers.alice = 'secret'\npermissions.log = ['alice']\n",
    """[[templates]]
name = 'orders'
pattern = 'orders.#'
messages_max = 1000
attach = [{ muxer = 'audit' }, { muxer = 'm', pattern = 'a.*' }, { muxer = 'p', property = ['urgent', 'size=3'] }]
[[templates]]
name = 's'
attach = [{ muxer = 's', selector = 'size > 3' }, { muxer = 'd', destination = 'x' }]
""",
    """AMBERMQ_SERVER__CONNECTIONS_MAX=2000
AMBERMQ_USERS__alice=secret
AMBERMQ_LISTENERS__LISTEN=amqp://h:1,unix:p
""",
    "--set server.connections_max=9\n--set listeners.listen=['ws://[::1]:80']\n",
    """[listeners]
listen = ['amqp://127.0.0.1:0', 'wss://localhost:443', 'unix:/tmp/s']
proxy_trusted = ['10.0.0.0/8']
""",
    "[compaction]\nat = '03:00'\n[retention]\nkeep_history = '7d'\n",
    "a = 1979-05-27T07:32:00Z\n[a.b]\nc = [1, [2, {d = 3.0e-9}]]\n",
)

TARGET: Final = Target(
    run,
    seeds,
    words=(
        *(path.encode() for path in all_keys()),
        *(
            f"[{table}]".encode()
            for table in ("engine", "log", "server", "users", "listeners", "compaction", "retention")
        ),
        *(
            b"[[templates]]",
            b"attach",
            b"muxer",
            b"selector",
            b"pattern",
            b"property",
            b"destination",
            b"AMBERMQ_",
            b"--set ",
        ),
        *(b"true", b"inf", b"nan", b"-1", b"9223372036854775808", b"1979-05-27", b'"""', b"'''", b"\\u0000"),
    ),
)
