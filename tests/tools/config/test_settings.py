"""The broker's limits from TOML: each key is a field, and an error is one message."""

from pathlib import Path

import pytest

from ambermq.engine.config import EngineConfig
from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.queue_template import TemplateAttachment
from ambermq.engine.settings.queue_settings import new_settings
from ambermq.tools.config.resolution import load_settings, read_settings
from ambermq.tools.config.settings import Settings
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode


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
    "text", ["[log]\nbatch_bytes_max = 2097152", "[engine]\nchunk_bytes = 2097152", "[engine]\nchunk_bytes = 256"]
)
def test_what_just_fits_is_taken(text: str) -> None:
    """Pieces of half a batch, batches of twice their target, and as many pieces as a record can number."""
    read_settings(text, "f")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[engin]", r"f: table \[engin\] is unknown; did you mean engine\?"),
        ("engine = 3", r"f: engine is invalid: expected a table \[engine\], found 3"),
        ("[engine]\nqueue_max = 1", r"f \[engine\]: queue_max is unknown; did you mean queues_max\?"),
        ("[permissions]\nlogs = []", r"f \[permissions\]: logs is unknown; did you mean log\?"),
        ("[permissions]\nlog = 'a'", r"log is invalid: expected a list of user names in quotes, found 'a'"),
        ("[log]\nxyzzy = 1", r"f \[log\]: xyzzy is unknown; known are segment_bytes_max, "),
        ("[engine]\nqueues_max = '1'", r"f \[engine\]: queues_max is invalid: expected a whole number"),
        ("[engine]\nqueues_max = -1", "expected a whole number, at least 0, found -1"),
        ("[engine]\nqueues_max = true", "expected a whole number, at least 0, found True"),
        (f"[engine]\nqueues_max = {1 << 63}", f"queues_max is invalid: expected at most {(1 << 63) - 1}, found"),
        (
            "[engine]\ntick_changes_max = 0",
            "expected consistent values, found tick_changes_max must be at least",
        ),
        ("[engine]\nscan_messages_max = 0", "found scan_messages_max must be at least 1, not 0"),
        ("[engine]\nlazy_sync_ms = 0", "found lazy_sync_ms must be at least 1, not 0"),
        ("[engine]\nauto_create = 1", "auto_create is invalid: expected true or false, found 1"),
        (
            "[log]\nbatch_bytes_max = 1",
            r"f \[log\]: the table is invalid: expected consistent values, found batch",
        ),
        (
            "[engine]\nchunk_bytes = 2097153",
            r"f \[engine\]: chunk_bytes is invalid: expected 1 to 2097152, half of batch",
        ),
        ("[engine]\nchunk_bytes = 0", r"f \[engine\]: chunk_bytes is invalid: expected 1 to 2097152"),
        (
            "[engine]\nchunk_bytes = 255",
            "expected at most 65536 pieces for a message of message_bytes_max, found 255, which gives 65794 pieces",
        ),
        ("[log]\nbatch_bytes_target=4096\nbatch_bytes_max = 1048576", "chunk_bytes is invalid: expected 1 to 524288"),
        (
            "[engine]\ndispatch_messages_max = 200000",
            r"batch_bytes_max is invalid: expected at least 4248952, for .* record of 3200304 bytes, .*, found 4194304",
        ),
        ("[connection]\nperformative_bytes_max = 1048576", "batch_bytes_max is invalid: expected at least"),
        ("[server]\ngrant_messages = 400000", "batch_bytes_max is invalid: expected at least"),
        ("[server]\nlink_name_bytes_max = 1048576", "batch_bytes_max is invalid: expected at least"),
        (
            "[connection]\nframe_bytes_max = 511",
            "frame_bytes_max is invalid: expected a whole number, at least 512, found",
        ),
        ("[connection]\nperformative_bytes_max = 0", "performative_bytes_max is invalid: expected .* at least 512"),
        ("[connection]\nchannel_max = 65536", "channel_max is invalid: expected at most 65535, found 65536"),
        ("[connection]\nidle_timeout_ms = 4294967296", "idle_timeout_ms is invalid: expected at most 4294967295"),
        ("[connection]\nwindow_frames = 0", "window_frames is invalid: expected a whole number, at least 1, found 0"),
        ("[server]\ncredit_max = 4294967296", "credit_max is invalid: expected at most 4294967295, found"),
        ("[server]\ngrant_messages = 0", "grant_messages is invalid: expected a whole number, at least 1, found 0"),
        ("[compaction]\ngarbage_percent = 101", "garbage_percent is invalid: expected at most 100, found 101"),
        ("[users]\n'' = 'secret'", r"f \[users\]: \"\" is invalid: expected the name of a user, found none"),
        ("[users]\nalice = ''", r"f \[users\]: alice is invalid: expected a password"),
        ("[users]\nalice = 1", r"f \[users\]: alice is invalid: expected a password in quotes, found int"),
        ("[", "f: the file is invalid: expected TOML"),
        ("a = " + "[" * 100_000, "f: the file is invalid: expected TOML, found maximum recursion depth"),
        ("a = " + "1" * 5_000, "f: the file is invalid: expected TOML, found Exceeds the limit"),
        ("[engine]\ntemplates = 1", r"f \[engine\]: templates is unknown"),
        ("[templates]", r"f: templates is invalid: expected tables \[\[templates\]\], found {}"),
        ("templates = [1]", r"f \[\[templates\]\] 1: the template is invalid: expected a table, found 1"),
        ("[[templates]]", "name is invalid: expected text in quotes, found ''"),
        (
            "[[templates]]\nname = 'a'\n[[templates]]\nname = 'a'",
            r"\[\[templates\]\] 2: name is invalid: expected a name that no template above has",
        ),
        ("[[templates]]\nname = 'a'\nmax = 1", "max is unknown; known are name, pattern, messages_max,"),
        (
            "[[templates]]\nname = 'a'\npattern = 'a*'",
            "pattern is invalid: expected a pattern, found .*stands for whole words",
        ),
        ("[[templates]]\nname = 'a'\nmessages_max = true", "messages_max is invalid: expected a whole number"),
        (
            f"[[templates]]\nname = 'a'\nmessages_max = {1 << 63}",
            "messages_max is invalid: expected a whole number from 0",
        ),
        (
            "[[templates]]\nname = 'a'\ndead_letter = '/queue/b'",
            "dead_letter is invalid: expected an address, found no node at '/queue/b'",
        ),
        ("[[templates]]\nname = 'a'\nattach = 'm'", "attach is invalid: expected a list of"),
        ("[[templates]]\nname = 'a'\nattach = [{}]", "attach is invalid: expected the name of a muxer, found none"),
        ("[[templates]]\nname = 'a'\nattach = [{muxer = 'm', x = 1}]", "attach is invalid: expected muxer and one of"),
        (
            "[[templates]]\nname = 'a'\nattach = [{muxer = 'm', pattern = 'a', selector = 'b'}]",
            "attach is invalid: expected an argument, found pattern and selector are given",
        ),
        ("[[templates]]\nname = 'a'\nattach = [{muxer = 'm', property = '=1'}]", "names no property"),
        (
            "[[templates]]\nname = 'a'\nattach = [{muxer = 'm', property = 'properties.subjekt=x'}]",
            "attach is invalid: expected the name of a message property, found 'properties.subjekt': .* message-id",
        ),
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


def test_templates_reach_the_engine() -> None:
    """In the file's order, the predefined ones behind them."""
    settings = read_settings(
        """
        [[templates]]
        name = "orders"
        pattern = "orders.#"
        messages_max = 5
        attach = [{ muxer = "audit" }, { muxer = "urgent", property = ["urgent", "size=3"] }]

        [[templates]]
        name = "normal"
        messages_max = 9
        """,
        "f",
    )
    orders, normal, *_ = settings.engine.templates.ordered
    conditions = (Condition("urgent"), Condition("size", True, 3))
    assert (orders.settings, orders.pattern) == (new_settings("orders", messages_max=5), "orders.#")
    assert orders.attach == (TemplateAttachment("audit"), TemplateAttachment("urgent", conditions, "conditions"))
    assert (normal.settings, normal.pattern) == (new_settings("normal", messages_max=9), "#")
    assert [one.name for one in settings.engine.templates.ordered] == ["orders", "normal", "temporary", "subscription"]
