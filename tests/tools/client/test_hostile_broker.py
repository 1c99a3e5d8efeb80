"""Whatever a peer sends to our commands, they end with a message and an exit code, in bounded memory."""

import re
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode

_MEMORY_BYTES_MAX: Final = 1 << 30
_ENDLESS_BYTES: Final = 1 << 30
"""More than the memory of the command."""
_SASL: Final = b"AMQP\x03\x01\x00\x00"
_AMQP: Final = b"AMQP\x00\x01\x00\x00"
_COMMANDS: Final = {
    "send": ("send", "q", "x"),
    "receive": ("receive", "q"),
    "bench": ("bench", "--count", "1"),
    "queue list": ("queue", "list"),
    "status": ("status",),
    "check": ("check",),
    "connections": ("connections", "list"),
    "user list": ("user", "list"),
    "muxer": ("muxer", "list"),
    "config": ("config", "reload"),
    "vhost": ("vhost", "list"),
}
Attack = Callable[[socket.socket], None]


def _send_endless(stream: socket.socket, start: bytes, piece: bytes) -> None:
    stream.sendall(start)
    for _ in range(_ENDLESS_BYTES // len(piece)):
        stream.sendall(piece)


_ATTACKS: Final[dict[str, Attack]] = {
    "closes at once": lambda _: None,
    "garbage": lambda stream: stream.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 100),
    "a huge frame": lambda stream: _send_endless(stream, _SASL + b"\xff\xff\xff\xff\x02\x01\x00\x00", bytes(1 << 16)),
    "a huge frame of AMQP": lambda stream: _send_endless(stream, _AMQP + b"\x7f\xff\xff\xff", bytes(1 << 16)),
    "endless zeros": lambda stream: _send_endless(stream, _SASL, bytes(1 << 16)),
    "endless letters": lambda stream: _send_endless(stream, b"", b"A" * (1 << 16)),
    "a frame that never ends": lambda stream: stream.sendall(_SASL + b"\x00\x00\x01\x00\x02\x01\x00\x00"),
}


@contextmanager
def _fake(attack: Attack) -> Iterator[str]:
    """Yield the URL of a peer that attacks each client, and reads nothing but what comes first."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    stream, _ = server.accept()
                except OSError:
                    return
                with stream, suppress(OSError):
                    stream.settimeout(20)
                    stream.recv(4096)
                    attack(stream)
                    if attack is _ATTACKS["a frame that never ends"]:
                        stream.recv(1)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"amqp://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, _MEMORY_BYTES_MAX))

    command = [sys.executable, "-m", "ambermq", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=limit, check=False)


@pytest.mark.parametrize("attack", _ATTACKS)
@pytest.mark.parametrize("command", ["send", "receive", "queue list"])
def test_no_peer_breaks_a_command(command: str, attack: str) -> None:
    """One line on standard error, no traceback, no defect, and no memory beyond the limit of the process."""
    with _fake(_ATTACKS[attack]) as url:
        done = _run(*_COMMANDS[command], "--url", url)
    assert done.returncode in {ExitCode.FAILED, ExitCode.CANNOT_CONNECT}, done.stderr
    assert re.fullmatch(r"error: .+\n", done.stderr)
    assert "internal error" not in done.stderr
    assert "memory" not in done.stderr


@pytest.mark.parametrize("command", sorted(_COMMANDS.keys() - {"send", "receive", "queue list"}))
def test_no_garbage_breaks_another_command(command: str) -> None:
    """All connect by the same client: one attack shows that each command passes its error on."""
    with _fake(_ATTACKS["garbage"]) as url:
        done = _run(*_COMMANDS[command], "--url", url)
    assert done.returncode in {ExitCode.FAILED, ExitCode.CANNOT_CONNECT}, done.stderr
    assert re.fullmatch(r"error: .+\n", done.stderr)
    assert "internal error" not in done.stderr


@contextmanager
def _relay(broker: ChildBroker, is_silent: threading.Event) -> Iterator[str]:
    """Yield the URL of a relay to a broker, whose answers it drops after an event."""
    host, port = broker.url.removeprefix("amqp://").split(":")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection((host, int(port))) as inner:

        def pump(source: socket.socket, sink: socket.socket, *, is_answer: bool) -> None:
            with suppress(OSError):
                while data := source.recv(1 << 16):
                    if not (is_answer and is_silent.is_set()):
                        sink.sendall(data)

        def serve() -> None:
            outer, _ = server.accept()
            with outer:
                back = threading.Thread(target=pump, args=(inner, outer), kwargs={"is_answer": True}, daemon=True)
                back.start()
                pump(outer, inner, is_answer=False)

        threading.Thread(target=serve, daemon=True).start()
        yield f"amqp://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("arguments", [("receive", "mute", "--follow"), ("send", "mute", "--lines"), ("status",)])
def test_a_broker_that_falls_silent_is_exit_4(broker: ChildBroker, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """It neither answers nor sends heartbeats, and its connection stays open."""
    assert _run("queue", "declare", "mute", "--url", broker.url).returncode == ExitCode.OK
    is_silent = threading.Event()
    silent = tmp_path / "silent.py"
    silent.write_text(
        "import ambermq.tools.client.link_client as client\n"
        "client._LIMITS = client.ConnectionLimits(idle_timeout_ms=2_000)\n"
        "client.TIMEOUT_SECONDS = 3.0\n"
        "from ambermq.tools.cli import main\n"
        "main(prog_name='ambermq')\n"
    )
    with _relay(broker, is_silent) as url:
        more = ("--interval", "3") if arguments == ("status",) else ()
        command = [sys.executable, str(silent), *arguments, *more, "--url", url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.5)
            is_silent.set()
            assert process.wait(30) == ExitCode.CANNOT_CONNECT
            assert process.stderr is not None
            assert "the broker has sent nothing for" in process.stderr.read()
