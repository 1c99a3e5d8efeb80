"""Options go before the environment, the environment before the file, for every key."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.tools.config.effective_values import MASK, live_settings, rows_of, shown, values_of
from ambermq.tools.config.keys import Key, all_keys
from ambermq.tools.config.layers import Entry
from ambermq.tools.config.resolution import InvalidSettings, SettingsSource
from ambermq.tools.config.settings import Settings
from ambermq.tools.terminal.exit_codes import ExitCode

_FREE = [key for key in all_keys().values() if key.table in {"connection", "retention", "logging", "permissions"}]
"""The keys whose values do not depend on others."""
_FREE_NAMES = {"message_bytes_max", "performative_bytes_max"}


def _values(key: Key) -> st.SearchStrategy[Any]:
    if key.is_list:
        return st.lists(st.text("abcü", min_size=1), min_size=1, max_size=3)
    if key.choices:
        return st.sampled_from(key.choices)
    if key.kind == "text":
        return st.text(st.characters(exclude_categories=["Cs", "Cc"]))
    return st.booleans() if key.kind == "true or false" else st.integers(*key.range)


def _text(value: Any) -> str:
    """Return a value as a variable has it."""
    if isinstance(value, list):
        return ",".join(value)
    return value if isinstance(value, str) else json.dumps(value)


def _sources(key: Key) -> st.SearchStrategy[tuple[Key, dict[str, Any]]]:
    names = st.sets(st.sampled_from(["file", "variable", "variable file", "option"]))
    return names.flatmap(lambda found: st.fixed_dictionaries({name: _values(key) for name in found})).map(
        lambda found: (key, found)
    )


_MIXTURES = st.lists(
    st.sampled_from([key for key in _FREE if key.name not in _FREE_NAMES]), unique=True, max_size=8
).flatmap(lambda keys: st.tuples(*map(_sources, keys)))


@given(_MIXTURES)
def test_every_mixture_resolves_by_the_order(
    tmp_path_factory: pytest.TempPathFactory, mixture: tuple[tuple[Key, dict[str, Any]], ...]
) -> None:
    """The strongest source that has a key decides its value and is its origin; the rest are defaults."""
    place = tmp_path_factory.mktemp("mixture")
    lines, variables, assignments, expected = [], {}, [], {}
    for key, sources in mixture:
        if "file" in sources:
            lines.append(f"{key.path} = {json.dumps(sources['file'], ensure_ascii=False)}".replace("\x7f", "\\u007f"))
            expected[key.path] = sources["file"], str(place / "f.toml")
        if "variable" in sources:
            variables[key.variable] = _text(sources["variable"])
            expected[key.path] = sources["variable"], key.variable
        elif "variable file" in sources:
            (place / key.name).write_text(_text(sources["variable file"]) + "\n", newline="")
            variables[f"{key.variable}_FILE"] = str(place / key.name)
            expected[key.path] = sources["variable file"], f"{key.variable}_FILE"
        if "option" in sources:
            assignments.append(f"{key.path}={_text(sources['option'])}")
            expected[key.path] = sources["option"], "--set"
    (place / "f.toml").write_text("\n".join(lines))
    found = SettingsSource(str(place / "f.toml"), variables, assignments).load()
    values = values_of(Settings()) | {path: shown(value) for path, (value, _) in expected.items()}
    assert values_of(found.settings) == values
    assert found.origins == {path: origin for path, (_, origin) in expected.items()}


def _mistakes(**source: Any) -> list[str]:
    with pytest.raises(InvalidSettings) as caught:
        SettingsSource(**source).load()
    assert caught.value.exit_code == ExitCode.USAGE
    return [mistake.message for mistake in caught.value.mistakes]


def test_every_mistake_is_found(tmp_path: Path) -> None:
    """Of all sources and tables, each with its place, its key, and what was expected and found."""
    file = tmp_path / "f"
    file.write_text(
        '[server]\nconnection_max = 1\nhandshake_ms = "x"\n[log]\nbatch_bytes_target = 1\nsegment_bytes_min = 1\n'
        '[users]\nbob = 3\n[[templates]]\nname = "a"\nmessages_max = -1\nfoo = 1\n[[templates]]\n'
    )
    variables = {"AMBERMQ_SERVER__CREDIT_MAX": "z", "AMBERMQ_SERVR__CREDIT_MAX": "1", "AMBERMQ_USERS__eve": ""}
    found = _mistakes(path=str(file), variables=variables, assignments=["server.creditmax=1", "users.a=b", "x"])
    for part in (
        f"{file} [server]: connection_max is unknown; did you mean connections_max?",
        f"{file} [server]: handshake_ms is invalid: expected a whole number, at least 0, found 'x'",
        "batch_bytes_target must be at least 4096, not 1",
        "segment_bytes_min must be at least 8192, not 1",
        f"{file} [users]: bob is invalid: expected a password in quotes, found int",
        "1: messages_max is invalid: expected a whole number from 0",
        "1: foo is unknown; known are name",
        "2: name is invalid",
        "AMBERMQ_SERVER__CREDIT_MAX: credit_max is invalid: expected a whole number, at least 1, found 'z'",
        "environment: AMBERMQ_SERVR__CREDIT_MAX is unknown; did you mean AMBERMQ_SERVER__CREDIT_MAX",
        "AMBERMQ_USERS__eve: eve is invalid: expected a password in quotes, found none",
        "--set: server.creditmax is unknown; did you mean server.credit_max?",
        "--set: users.a is invalid: expected no password on a command line",
        "--set: x is invalid: expected TABLE.KEY=VALUE",
    ):
        assert [one for one in found if part in one], part
    assert len(found) == 14


def test_an_overridden_value_is_checked() -> None:
    """A mistake that another source hides today is found today."""
    assert _mistakes(variables={"AMBERMQ_SERVER__CREDIT_MAX": "0"}, assignments=["server.credit_max=1"])


@pytest.mark.parametrize(
    "name",
    ["AMBERMQ_SERVICE_HOST", "AMBERMQ_SERVICE_PORT_AMQP", "AMBERMQ_PORT", "AMBERMQ_PORT_5672_TCP_ADDR", "AMBERMQX"],
)
def test_variables_of_a_kubernetes_service_are_no_mistake(name: str) -> None:
    """A service with the name `ambermq` sets them in each container of its namespace."""
    assert SettingsSource(variables={name: "tcp://10.0.0.1:5672"}).load().settings == Settings()


def test_a_variable_and_its_file_exclude_each_other() -> None:
    """Neither is silently ignored."""
    name = "AMBERMQ_SERVER__CREDIT_MAX"
    assert "both" in _mistakes(variables={name: "1", f"{name}_FILE": "/x"})[0]


def test_a_file_that_cannot_be_read_is_named_with_its_variable(tmp_path: Path) -> None:
    """Without its content, which may be a secret."""
    large, binary = tmp_path / "large", tmp_path / "binary"
    large.write_text("s" * 70_000)
    binary.write_bytes(b"\xffsecret")
    for path, why in ((tmp_path / "none", "No such file"), (large, "more than 65536 bytes"), (binary, "not UTF-8")):
        (message,) = _mistakes(variables={"AMBERMQ_USERS__alice_FILE": str(path)})
        assert message.startswith("AMBERMQ_USERS__alice_FILE: ")
        assert why in message
        assert "secret" not in message


def test_templates_are_in_the_file_alone() -> None:
    """The message says so."""
    assert "write templates in the configuration file" in _mistakes(variables={"AMBERMQ_TEMPLATES": "x"})[0]


def test_no_row_has_a_secret() -> None:
    """Neither a password of a user nor that of a URL."""
    source = SettingsSource(
        assignments=["retention.archive=s3://me:hush@host/x"],
        options={"users.alice": Entry("hush", "--user", "--user")},
    )
    rows = rows_of(source.load())
    assert "hush" not in str(rows)
    assert {row["value"] for row in rows if row["key"] == "users.alice"} == {MASK}


def test_a_reload_takes_only_live_keys() -> None:
    """Keys that need a restart keep their values; tables and templates that are live change whole."""
    wanted = SettingsSource(assignments=["server.connections_max=7", "log.hot_bytes_max=9", "engine.mark_ms=3"]).load()
    assert (
        live_settings(Settings(), wanted.settings)
        == SettingsSource(assignments=["server.connections_max=7"]).load().settings
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("http://a:word@h:4318/v1", f"http://a:{MASK}@h:4318/v1"),
        ("https://h/v1?token=word&x=1", f"https://h/v1?{MASK}"),
        ("https://h/v1#word", f"https://h/v1#{MASK}"),
        ("amqps://0.0.0.0:5671", "amqps://0.0.0.0:5671"),
        ("why? because", "why? because"),
    ],
)
def test_a_url_is_shown_without_its_secrets(value: str, expected: str) -> None:
    """A collector of spans may take its key in the query."""
    assert shown(value) == expected
