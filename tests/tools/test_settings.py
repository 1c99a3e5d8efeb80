"""The broker's bounds from TOML: every name is a field, and what is wrong is one message."""

from pathlib import Path

import pytest

from engine.config import EngineConfig
from tools.errors import ToolError
from tools.exit_codes import ExitCode
from tools.settings import Settings, load_settings, read_settings


def test_nothing_is_the_defaults() -> None:
    """An empty file changes nothing."""
    assert read_settings("", "f") == Settings()


def test_every_table_reaches_its_configuration() -> None:
    """Names are the fields' own."""
    settings = read_settings(
        """
        engine.auto_create = false
        log.segment_age_ms_max = 5
        connection.channel_max = 3
        server.connections_max = 9
        users.alice = "secret"
        permissions.log = ["alice"]
        """,
        "f",
    )
    assert settings.engine == EngineConfig(auto_create=False)
    assert settings.log.segment_age_ms_max == 5
    assert settings.connection.channel_max == 3
    assert settings.server.connections_max == 9
    assert settings.users == {"alice": "secret"}
    assert settings.permissions.log == ("alice",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[engin]", r"f: table \[engin\] is unknown; did you mean engine\?"),
        ("engine = 3", r"f: engine is wrong: expected a table \[engine\], found 3"),
        ("[engine]\nqueue_max = 1", r"f \[engine\]: queue_max is unknown; did you mean queues_max\?"),
        ("[permissions]\nlogs = []", r"f \[permissions\]: logs is unknown; did you mean log\?"),
        ("[permissions]\nlog = 'a'", r"log is wrong: expected a list of users' names in quotes, found 'a'"),
        ("[log]\nxyzzy = 1", r"f \[log\]: xyzzy is unknown; known are segment_bytes_max, "),
        ("[engine]\nqueues_max = '1'", r"f \[engine\]: queues_max is wrong: expected a whole number"),
        ("[engine]\nqueues_max = -1", "expected a whole number, at least 0, found -1"),
        ("[engine]\nqueues_max = true", "expected a whole number, at least 0, found True"),
        ("[engine]\nauto_create = 1", "auto_create is wrong: expected true or false, found 1"),
        (
            "[log]\nbatch_bytes_max = 1",
            r"f \[log\]: the table is wrong: expected values that work together, found batch",
        ),
        ("[users]\nalice = ''", r"f \[users\]: alice is wrong: expected a password"),
        ("[users]\nalice = 1", r"f \[users\]: alice is wrong: expected a password in quotes, found int"),
        ("[", "f: the file is wrong: expected TOML"),
    ],
)
def test_what_is_wrong_is_one_message_with_its_place(text: str, message: str) -> None:
    """File, table and name are told, and what would be right; exit code 2."""
    with pytest.raises(ToolError, match=message) as caught:
        read_settings(text, "f")
    assert caught.value.exit_code == ExitCode.USAGE
    assert "\n" not in caught.value.message


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are no TOML."""
    path = tmp_path / "f"
    path.write_bytes(b"\xff")
    with pytest.raises(ToolError, match="expected UTF-8"):
        load_settings(str(path))
