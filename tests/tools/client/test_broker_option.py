"""Exactly one of a URL and a directory, from a flag or the environment."""

import os
import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ambermq.tools.client.broker_option import (
    broker_of_directory,
    broker_options,
    broker_url,
    data_directory,
    running_broker,
    write_holder,
)
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

URL = "amqp://flag:1"


def held(directory: Path, *, pid: int, url: str = "amqp://held:1") -> str:
    (directory / "lock").touch()
    write_holder(str(directory), pid, url)
    return str(directory)


def dead_pid() -> int:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def test_a_url_is_taken_as_it_is() -> None:
    """--url names the broker."""
    assert broker_url(URL, None) == URL


def test_a_directory_names_the_broker_that_runs_on_it(tmp_path: Path) -> None:
    """--data finds the URL in the lock file."""
    assert broker_url(None, held(tmp_path, pid=os.getpid())) == "amqp://held:1"


@click.command()
@broker_options
def _show(url: str | None, data: str | None) -> None:
    click.echo(broker_url(url, data))


@pytest.mark.parametrize(
    ("path", "options", "expected"),
    [
        ("", [], ""),
        ("/", [], "/"),
        ("/vhost:a", [], "/vhost:a"),
        ("", ["--vhost", "a"], "/vhost:a"),
        ("/vhost:a%20b", ["--vhost", "a b"], "/vhost:a%20b"),
        ("", ["--vhost", "default"], ""),
        ("/vhost:default", ["--vhost", "default"], "/vhost:default"),
    ],
)
def test_a_virtual_host_is_named_by_the_url_or_by_its_option(path: str, options: list[str], expected: str) -> None:
    """Or by both, if the names are equal; the default of the option names none."""
    told = CliRunner().invoke(_show, ["--url", URL + path, *options])
    assert (told.exit_code, told.output) == (0, f"{URL}{expected}\n")


@pytest.mark.parametrize("name", ["b", "default"])
def test_different_virtual_hosts_in_both_options_are_a_wrong_command_line(name: str) -> None:
    """Neither is preferred: the message has both names, and no password."""
    told = CliRunner().invoke(_show, ["--url", "amqp://me:secret@host/vhost:a", "--vhost", name])
    assert told.exit_code == 2
    assert f"--vhost names the virtual host '{name}', and --url names 'a': give one of them" in told.output
    assert "secret" not in told.output


@pytest.mark.parametrize("name", ["b", "default"])
def test_the_option_of_a_virtual_host_beats_the_url_of_the_environment(name: str) -> None:
    """As any option; with the default one, too."""
    told = CliRunner().invoke(_show, ["--vhost", name], env={"AMBERMQ_URL": f"{URL}/vhost:a"})
    assert told.output == f"{URL}/vhost:{name}\n"


def test_both_flags_are_a_wrong_command_line() -> None:
    """Neither of two flags is preferred."""
    with pytest.raises(click.UsageError, match="not both"):
        broker_url(URL, "dir")


def test_none_is_a_wrong_command_line_that_names_all_ways() -> None:
    """The message says how to name a broker."""
    with pytest.raises(click.UsageError, match=r"--url, --data or --context, or set AMBERMQ_URL, AMBERMQ_DATA or"):
        broker_url(None, None)


def test_a_flag_beats_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Either flag hides both variables."""
    monkeypatch.setenv("AMBERMQ_URL", "amqp://environment:1")
    assert broker_url(None, held(tmp_path, pid=os.getpid())) == "amqp://held:1"
    monkeypatch.setenv("AMBERMQ_DATA", "/nowhere")
    assert broker_url(URL, None) == URL
    assert data_directory(str(tmp_path)) == str(tmp_path)


def test_the_environment_stands_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a flag the one variable that is set counts."""
    monkeypatch.setenv("AMBERMQ_DATA", held(tmp_path, pid=os.getpid()))
    assert broker_url(None, None) == "amqp://held:1"
    assert data_directory(None) == str(tmp_path)
    monkeypatch.delenv("AMBERMQ_DATA")
    monkeypatch.setenv("AMBERMQ_URL", URL)
    assert broker_url(None, None) == URL


def test_both_variables_are_a_wrong_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of two variables is preferred."""
    monkeypatch.setenv("AMBERMQ_URL", URL)
    monkeypatch.setenv("AMBERMQ_DATA", "dir")
    with pytest.raises(click.UsageError, match="both set"):
        broker_url(None, None)


def test_an_unreadable_lock_file_is_not_taken_for_a_free_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is unknown then whether a broker runs, so no message advises to start one."""

    def forbid(path: str, *_: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("ambermq.log.manifest.writer_lock.open", forbid, raising=False)
    with pytest.raises(PermissionError, match="lock"):
        broker_url(None, str(tmp_path))


def test_the_text_of_a_dead_broker_names_no_broker(tmp_path: Path) -> None:
    """A lock file outlives a SIGKILL; its pid tells."""
    directory = held(tmp_path, pid=dead_pid())
    assert broker_of_directory(directory) is None
    with pytest.raises(ToolError, match="no broker runs") as caught:
        broker_url(None, directory)
    assert caught.value.exit_code == ExitCode.CANNOT_CONNECT


def test_the_directory_of_a_virtual_host_has_no_broker_of_its_own(tmp_path: Path) -> None:
    """The directory of a virtual host is none that a broker can be started on."""
    below = tmp_path / "staging"
    below.mkdir()
    with pytest.raises(ToolError, match=r"staging: no broker runs.*ambermq serve --data \./data$"):
        running_broker(str(below), served="./data")


def test_the_copy_of_a_locked_directory_is_not_locked(tmp_path: Path) -> None:
    """A command on the copy of a directory must not reach the broker of the original."""
    original, copy = tmp_path / "original", tmp_path / "copy"
    original.mkdir()
    held(original, pid=os.getpid())
    shutil.copytree(original, copy)
    assert broker_of_directory(str(original)) is not None
    assert broker_of_directory(str(copy)) is None


@pytest.mark.parametrize("text", ["", "{", '{"pid": "x"}', "[]"])
def test_a_malformed_lock_file_names_no_broker(tmp_path: Path, text: str) -> None:
    """A broker that is starting has not written yet."""
    (tmp_path / "lock").write_text(text)
    assert broker_of_directory(str(tmp_path)) is None


def test_a_missing_directory_is_not_found() -> None:
    """Exit code 6, and which directory."""
    with pytest.raises(ToolError, match="/nowhere: no such directory") as caught:
        data_directory("/nowhere")
    assert caught.value.exit_code == ExitCode.NOT_FOUND
