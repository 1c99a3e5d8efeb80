"""Contexts over their whole life: added, used by other commands, listed, damaged, deleted."""

import json
import os
import stat
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client import context_file
from ambermq.tools.client.context_file import Context, Contexts, change_contexts, contexts_path, load_contexts
from ambermq.tools.client.tls_option import TlsFiles, offer_tls_files, tls_files
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run


def test_add_stores_absolute_paths_and_no_secret(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of a password is named, from any directory, and the file of contexts belongs to its user alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "alice.txt").write_text("secret")
    done = run("context", "add", "prod", "--url", "amqps://alice@broker:5671", "--password-file", "alice.txt")
    assert done.exit_code == 0, done.output
    assert "added prod; to use it: ambermq context use prod" in done.output
    assert load_contexts().contexts["prod"].password_file == str(tmp_path / "alice.txt")
    assert "secret" not in contexts_path().read_text()
    assert stat.S_IMODE(contexts_path().stat().st_mode) == 0o600
    assert stat.S_IMODE(contexts_path().parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--url", "amqp://alice:secret@broker"], "--password-file"),
        (["--url", "http://broker"], "amqp"),
        (["--url", "amqp://a", "--data", "b"], "not exactly one"),
        (["--url", "amqp://a", "--password-file", "-"], "standard input"),
        (["--url", "amqp://a", "--password-file", "f"], "USER@HOST"),
        (["--data", "a", "--password-file", "f"], "USER@HOST"),
        (["--url", "amqp://alice:sec/ret@broker"], "%2F"),
        ([], "--url or --data"),
    ],
)
def test_add_refuses_what_no_command_could_use(run: Run, options: list[str], expected: str) -> None:
    """Each mistake is one message with exit code 2, and nothing is stored."""
    done = run("context", "add", "prod", *options)
    assert (done.exit_code, expected in done.output) == (ExitCode.USAGE, True), done.output
    assert "secret" not in done.output
    assert not contexts_path().exists()


def test_a_wrong_name_is_refused(run: Run) -> None:
    """A name is a word for the shell."""
    assert run("context", "add", "-- a b", "--url", "amqp://a").exit_code == ExitCode.USAGE
    assert run("context", "add", "a/b", "--url", "amqp://a").exit_code == ExitCode.USAGE


def test_an_existing_context_is_replaced_only_on_request(run: Run) -> None:
    """A second `add` changes nothing without --replace."""
    run("context", "add", "prod", "--url", "amqp://one")
    done = run("context", "add", "prod", "--url", "amqp://two")
    assert (done.exit_code, "--replace" in done.output) == (ExitCode.FAILED, True)
    assert load_contexts().contexts["prod"].url == "amqp://one"
    assert run("context", "add", "prod", "--url", "amqp://two", "--replace").exit_code == 0
    assert load_contexts().contexts["prod"].url == "amqp://two"


def test_commands_use_the_context_in_the_order_of_the_rules(
    run: Run, broker: ChildBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Option, environment, AMBERMQ_CONTEXT, current context: the first that names a place decides."""
    run("context", "add", "here", "--url", broker.url, "--use")
    run("context", "add", "files", "--data", broker.directory)
    run("context", "add", "nowhere", "--url", "amqp://127.0.0.1:1")
    assert run("queue", "list").exit_code == 0
    assert run("queue", "list", "--context", "nowhere").exit_code == ExitCode.CANNOT_CONNECT
    assert run("queue", "list", "--context", "files").exit_code == 0
    assert run("log", "verify", "--context", "files").exit_code == 0
    monkeypatch.setenv("AMBERMQ_CONTEXT", "nowhere")
    assert run("queue", "list").exit_code == ExitCode.CANNOT_CONNECT
    assert run("queue", "list", "--context", "here").exit_code == 0
    monkeypatch.setenv("AMBERMQ_URL", broker.url)
    assert run("queue", "list").exit_code == 0
    assert run("queue", "list", "--url", "amqp://127.0.0.1:1").exit_code == ExitCode.CANNOT_CONNECT
    assert run("log", "verify", "--context", "files", "--data", broker.directory).exit_code == ExitCode.USAGE
    both = run("queue", "list", "--url", broker.url, "--context", "here")
    assert (both.exit_code, "one of them" in both.output) == (ExitCode.USAGE, True)


def test_a_command_that_reads_a_directory_says_what_a_url_lacks(run: Run) -> None:
    """A context of a URL has no log to read."""
    run("context", "add", "there", "--url", "amqp://there", "--use")
    done = run("log", "verify")
    assert (done.exit_code, "context 'there' names a URL" in done.output) == (ExitCode.USAGE, True), done.output


def test_the_password_of_a_context_goes_to_no_other_broker(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --url the files of the current context are not read: this one does not exist."""
    run("context", "add", "prod", "--url", "amqp://a@127.0.0.1:1", "--password-file", tmp_path / "missing", "--use")
    own = run("queue", "list")
    assert (own.exit_code, "missing" in own.output) == (ExitCode.USAGE, True), own.output
    other = run("queue", "list", "--url", "amqp://a@127.0.0.1:1")
    assert (other.exit_code, "missing" in other.output) == (ExitCode.CANNOT_CONNECT, False), other.output
    (tmp_path / "other").write_text("x")
    monkeypatch.setenv("AMBERMQ_PASSWORD_FILE", str(tmp_path / "other"))
    assert run("queue", "list").exit_code == ExitCode.CANNOT_CONNECT


def test_list_and_show_name_the_current_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`show` without a name says what names the context in force."""
    assert run("context", "show").exit_code == ExitCode.NOT_FOUND
    run("context", "add", "b", "--data", "/b", "--use")
    run("context", "add", "a", "--url", "amqp://a")
    rows = json.loads(run("context", "list", "--output", "json").output)
    assert [(row["name"], row["current"]) for row in rows] == [("a", False), ("b", True)]
    shown = json.loads(run("context", "show", "--output", "json").output)
    assert (shown["name"], shown["data"], shown["source"]) == ("b", "/b", "the current context")
    monkeypatch.setenv("AMBERMQ_CONTEXT", "a")
    assert json.loads(run("context", "show", "--output", "json").output)["source"] == "AMBERMQ_CONTEXT"


@pytest.mark.parametrize("variable", ["AMBERMQ_URL", "AMBERMQ_DATA"])
def test_show_says_what_goes_before_every_context(run: Run, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """With the variable no command uses the current context; a named one is still shown."""
    run("context", "add", "prod", "--url", "amqp://one", "--use")
    monkeypatch.setenv(variable, "amqp://two")
    done = run("context", "show")
    assert (done.exit_code, variable in done.output) == (ExitCode.NOT_FOUND, True), done.output
    assert run("context", "show", "prod").exit_code == 0


def test_a_unix_socket_and_files_are_found_from_any_directory(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All paths are absolute, but for the name of an abstract socket."""
    monkeypatch.chdir(tmp_path)
    run("context", "add", "here", "--url", "unix:run/amqp.sock/vhost:a")
    run("context", "add", "there", "--url", "unix:@name", "--tls-ca", "ca.pem")
    known = load_contexts().contexts
    assert known["here"].url == f"unix:{tmp_path}/run/amqp.sock/vhost:a"
    assert (known["there"].url, known["there"].tls_ca) == ("unix:@name", str(tmp_path / "ca.pem"))


def test_a_certificate_and_its_key_are_one_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate of the environment is not joined with the key of the context; the authorities are."""
    for name in ("CA", "CERT", "KEY"):
        monkeypatch.setenv(f"AMBERMQ_TLS_{name}", "")
    offer_tls_files(TlsFiles("ca", "cert", "key"))
    assert tls_files() == TlsFiles("ca", "cert", "key")
    monkeypatch.setenv("AMBERMQ_TLS_CERT", "mine")
    monkeypatch.setenv("AMBERMQ_TLS_KEY", "")
    offer_tls_files(TlsFiles("other", "cert", "key"))
    assert tls_files() == TlsFiles("ca", "mine", "")


@pytest.mark.parametrize("is_directory", [False, True])
def test_a_file_that_others_can_write_is_refused(run: Run, is_directory: bool) -> None:
    """Another user could send the commands to another broker."""
    run("context", "add", "prod", "--url", "amqp://one", "--use")
    path = contexts_path().parent if is_directory else contexts_path()
    path.chmod(0o777 if is_directory else 0o666)
    done = run("context", "list")
    assert (done.exit_code, "other users can change" in done.output) == (ExitCode.USAGE, True), done.output
    path.chmod(0o700 if is_directory else 0o600)
    assert run("context", "list").exit_code == 0


def test_an_unknown_context_has_near_names(run: Run) -> None:
    """A typing error is exit 6 with the nearest name, in each command."""
    run("context", "add", "production", "--url", "amqp://a")
    for arguments in (["context", "use", "prodution"], ["queue", "list", "--context", "prodution"]):
        done = run(*arguments)
        assert (done.exit_code, "did you mean 'production'?" in done.output) == (ExitCode.NOT_FOUND, True)


def test_delete_leaves_no_current_context(run: Run) -> None:
    """--dry-run changes nothing; the deletion of the current context says so."""
    run("context", "add", "a", "--url", "amqp://a", "--use")
    assert "would delete a" in run("context", "delete", "a", "--dry-run").output
    assert "a" in load_contexts().contexts
    assert "no context is current now" in run("context", "delete", "a", "--yes").output
    assert load_contexts() == Contexts()
    assert run("context", "delete", "a", "--yes").exit_code == ExitCode.NOT_FOUND


def test_use_none_ends_the_use(run: Run) -> None:
    """Exactly one of NAME and --none is given."""
    run("context", "add", "a", "--url", "amqp://a", "--use")
    assert run("context", "use", "a", "--none").exit_code == ExitCode.USAGE
    assert run("context", "use").exit_code == ExitCode.USAGE
    assert run("context", "use", "--none").exit_code == 0
    assert not load_contexts().current


@pytest.mark.parametrize(
    "content",
    [
        b"\xff",
        b"current = ",
        b"current = 1",
        b"[contexts.a]\nurl = 'amqp://a'\nport = 1",
        b"[contexts.a]",
        b"[contexts.a]\nurl = 'amqp://a:secret@b'",
        b"[contexts.'a b']\nurl = 'amqp://a'",
        b"#" * ((1 << 20) + 1),
    ],
)
def test_a_damaged_file_is_one_message(run: Run, content: bytes) -> None:
    """Each command that needs the file names it; a command with --url does not need it."""
    contexts_path().parent.mkdir(parents=True, exist_ok=True)
    contexts_path().write_bytes(content)
    for arguments in (["context", "list"], ["context", "add", "b", "--url", "amqp://b"], ["queue", "list"]):
        done = run(*arguments)
        assert done.exit_code == ExitCode.USAGE, done.output
        assert "the file of contexts is damaged" in done.output
        assert "contexts.toml" in done.output
        assert "secret" not in done.output
    assert contexts_path().read_bytes() == content
    assert run("queue", "list", "--url", "amqp://127.0.0.1:1").exit_code == ExitCode.CANNOT_CONNECT


def test_a_current_context_that_is_gone_is_named(run: Run) -> None:
    """A file edited by hand may name a context that it does not hold."""
    change_contexts(lambda _known: Contexts("gone", {"a": Context(url="amqp://a")}))
    done = run("queue", "list")
    assert (done.exit_code, "no context 'gone'" in done.output) == (ExitCode.NOT_FOUND, True)


def test_a_kill_before_the_replacement_keeps_the_old_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed command has left of the new file is replaced by the next command."""
    run("context", "add", "a", "--url", "amqp://a")
    with monkeypatch.context() as patch:
        patch.setattr(context_file.os, "fsync", lambda _descriptor: os._exit(9))
        child = os.fork()
        if child == 0:
            change_contexts(lambda _known: Contexts())
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert list(load_contexts().contexts) == ["a"]
    assert run("context", "add", "b", "--url", "amqp://b").exit_code == 0
    assert list(load_contexts().contexts) == ["a", "b"]


def test_a_full_disk_changes_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command says what failed, and the old contexts stay."""
    run("context", "add", "a", "--url", "amqp://a")

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(context_file.os, "fsync", fail)
        done = run("context", "add", "b", "--url", "amqp://b")
    assert (done.exit_code, "No space left" in done.output) == (ExitCode.FAILED, True), done.output
    assert list(load_contexts().contexts) == ["a"]


def test_the_number_of_contexts_is_bounded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more than the most is refused; a replacement is none more."""
    monkeypatch.setattr("ambermq.tools.contexts.command.CONTEXTS_MAX", 1)
    run("context", "add", "a", "--url", "amqp://a")
    assert run("context", "add", "b", "--url", "amqp://b").exit_code == ExitCode.FAILED
    assert run("context", "add", "a", "--url", "amqp://b", "--replace").exit_code == 0
