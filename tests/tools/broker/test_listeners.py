"""Listeners of a real broker: TLS, unix sockets, proxies and WebSocket, and what strangers meet there."""

import os
import signal
import socket
import ssl
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, Ping, Pong, Request, TextMessage

from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_HEADER
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.tls_option import CA_VARIABLE, CERT_VARIABLE, KEY_VARIABLE
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run

TLS_HEADER = b"AMQP\x02\x01\x00\x00"


class Certificates:
    """An authority, and the files of a broker and a client."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.authority = trustme.CA()
        self.ca = place / "ca.pem"
        self.authority.cert_pem.write_to_path(self.ca)
        self.cert, self.key = self.issue("broker", "localhost", "127.0.0.1")

    def issue(self, name: str, *identities: str, authority: trustme.CA | None = None) -> tuple[Path, Path]:
        """Write a certificate and its key; an existing pair is replaced."""
        leaf = (authority or self.authority).issue_cert(*identities, common_name=name)
        cert, key = self.place / f"{name}.pem", self.place / f"{name}.key"
        cert.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
        key.write_bytes(leaf.private_key_pem.bytes())
        key.chmod(0o600)
        return cert, key

    @property
    def arguments(self) -> tuple[str, ...]:
        """The options of `serve`."""
        return ("--tls-cert", str(self.cert), "--tls-key", str(self.key))

    def context(self) -> ssl.SSLContext:
        """Return the context of a client."""
        return ssl.create_default_context(cafile=str(self.ca))


@pytest.fixture
def certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Certificates:
    for name in (CA_VARIABLE, CERT_VARIABLE, KEY_VARIABLE):
        monkeypatch.setenv(name, "")
    return Certificates(tmp_path)


@contextmanager
def serving(place: Path, *arguments: object) -> Iterator[ChildBroker]:
    """Run a broker with these arguments."""
    broker = ChildBroker(place / "data", arguments=[str(one) for one in arguments])
    broker.start()
    try:
        yield broker
    finally:
        assert broker.stop() == ExitCode.OK
        assert "Traceback" not in broker.stderr_path.read_text()


def connected(url: str) -> socket.socket:
    """Return a connection to a TCP listener."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return socket.create_connection((parts.hostname, parts.port), timeout=10)


def answer(stream: socket.socket) -> bytes:
    """Return everything up to the end of a connection."""
    received = b""
    try:
        while data := stream.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    return received


def logged(broker: ChildBroker, text: str) -> bool:
    """Return whether the log has a text, now or soon."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if text in broker.stderr_path.read_text():
            return True
        time.sleep(0.05)
    return False


def test_several_listeners_serve_at_once(run: Run, tmp_path: Path, certificates: Certificates) -> None:
    """The first line names the plain one first, and the others behind it."""
    path = tmp_path / "socket"
    listen = ("amqps://127.0.0.1:0", f"unix:{path}", "ws://127.0.0.1:0", "amqp://127.0.0.1:0")
    options = [word for one in listen for word in ("--listen", one)]
    with serving(tmp_path, *options, *certificates.arguments) as broker:
        assert broker.url.startswith("amqp://127.0.0.1:")
        assert [one.partition(":")[0] for one in broker.listen] == ["amqps", "unix", "ws"]
        tls = ("--tls-ca", certificates.ca)
        for url in (broker.url, broker.listen[0], f"unix:{path}"):
            assert run("send", "q", "x", "--url", url, *tls).exit_code == ExitCode.OK
        assert run("receive", "q", "--count", 3, "--url", broker.listen[0]).stdout == "x\nx\nx\n"
    assert not path.exists()


def test_a_broker_with_tls_alone_says_amqps(run: Run, tmp_path: Path, certificates: Certificates) -> None:
    """Its commands with --data use the unix socket, and need neither certificate nor password."""
    arguments = ("--listen", "amqps://127.0.0.1:0", "--user", "alice:secret", *certificates.arguments)
    with serving(tmp_path, *arguments) as broker:
        assert broker.url.startswith("amqps://127.0.0.1:")
        assert run("send", "q", "x", "--data", broker.directory).exit_code == ExitCode.OK
        with_user = broker.url.replace("amqps://", "amqps://alice:secret@")
        assert run("receive", "q", "--url", with_user, "--tls-ca", certificates.ca).stdout == "x\n"


def test_the_certificate_of_the_broker_is_verified(run: Run, tmp_path: Path, certificates: Certificates) -> None:
    """An unknown authority and a wrong host are refused by our client, with what to do."""
    with serving(tmp_path, "--listen", "amqps://127.0.0.1:0", *certificates.arguments) as broker:
        result = run("send", "q", "x", "--url", broker.url)
        assert result.exit_code == ExitCode.CANNOT_CONNECT
        assert "the broker's certificate is not trusted" in result.stderr
        assert "--tls-ca" in result.stderr
        missing = run("send", "q", "x", "--url", broker.url, "--tls-ca", tmp_path / "missing.pem")
        assert missing.exit_code == ExitCode.USAGE


def test_tls_begins_with_1_2(tmp_path: Path, certificates: Certificates) -> None:
    """1.2 and 1.3 are spoken, a peer of 1.1 is a line of the log."""
    with serving(tmp_path, "--listen", "amqps://localhost:0", *certificates.arguments) as broker:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = certificates.context()
            context.minimum_version = context.maximum_version = version
            with context.wrap_socket(connected(broker.url), server_hostname="localhost") as stream:
                stream.sendall(SASL_HEADER)
                assert stream.recv(8) == SASL_HEADER
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(OSError, match=r"(?i)protocol|alert|reset|eof"):  # noqa: SIM117 - the handshake is what fails
            with context.wrap_socket(connected(broker.url)):
                pass
        assert logged(broker, "TLS: ")


@pytest.mark.parametrize("kind", ["mode", "missing", "pair", "none"])
def test_wrong_certificates_refuse_the_start(run: Run, tmp_path: Path, certificates: Certificates, kind: str) -> None:
    """Exit code 2 with advice, before the directory is made."""
    other = certificates.issue("other", "localhost")[1]
    arguments: tuple[object, ...] = certificates.arguments
    if kind == "mode":
        certificates.key.chmod(0o644)
    elif kind == "missing":
        arguments = ("--tls-cert", tmp_path / "no.pem", "--tls-key", certificates.key)
    elif kind == "pair":
        arguments = ("--tls-cert", certificates.cert, "--tls-key", other)
    else:
        arguments = ()
    result = run("serve", "--data", tmp_path / "data", "--listen", "amqps://127.0.0.1:0", *arguments)
    assert result.exit_code == ExitCode.USAGE
    text = {"mode": "chmod 600", "missing": "No such file", "pair": "mismatch", "none": "--tls-cert FILE"}[kind]
    assert text in result.stderr
    assert not (tmp_path / "data").exists()


def serial_of(broker: ChildBroker, context: ssl.SSLContext) -> bytes:
    """Return the certificate that new handshakes get."""
    with context.wrap_socket(connected(broker.url), server_hostname="localhost") as stream:
        found = stream.getpeercert(binary_form=True)
    assert found is not None
    return found


def is_open(stream: ssl.SSLSocket) -> bool:
    """Return whether a connection has not ended; its input is dropped."""
    try:
        while stream.recv(4096):
            pass
    except (TimeoutError, ssl.SSLWantReadError):
        return True
    return False


def test_certificates_are_reloaded_under_load(run: Run, tmp_path: Path, certificates: Certificates) -> None:
    """SIGHUP gives new handshakes the new pair; a pair that does not fit keeps the old one; no connection is cut."""
    context = certificates.context()
    with serving(tmp_path, "--listen", "amqps://localhost:0", *certificates.arguments) as broker, ExitStack() as stack:
        before = serial_of(broker, context)
        streams = [
            stack.enter_context(context.wrap_socket(connected(broker.url), server_hostname="localhost"))
            for _ in range(10)
        ]
        for stream in streams:
            stream.sendall(SASL_HEADER)
            assert stream.recv(8) == SASL_HEADER
        certificates.issue("broker", "localhost")
        os.kill(broker.pid, signal.SIGHUP)
        assert logged(broker, "certificates reloaded")
        after = serial_of(broker, context)
        assert after != before
        certificates.key.write_bytes(certificates.issue("other", "localhost")[1].read_bytes())
        os.kill(broker.pid, signal.SIGHUP)
        assert logged(broker, "certificates not reloaded")
        assert serial_of(broker, context) == after
        for stream in streams:
            stream.settimeout(0.01)
            assert is_open(stream)
        sent = run("send", "q", "x", "--count", 20, "--url", broker.url, "--tls-ca", certificates.ca)
        assert sent.exit_code == ExitCode.OK


def test_a_hangup_does_not_kill_a_plain_broker(run: Run, tmp_path: Path) -> None:
    """Without TLS there is nothing to reload yet."""
    with serving(tmp_path) as broker:
        os.kill(broker.pid, signal.SIGHUP)
        assert logged(broker, "reloaded")
        assert run("send", "q", "x", "--url", broker.url).exit_code == ExitCode.OK


def test_half_open_handshakes_do_not_stop_others(run: Run, tmp_path: Path, certificates: Certificates) -> None:
    """A hundred peers that never finish TLS are ended by handshake_ms, and others connect meanwhile."""
    config = tmp_path / "broker.toml"
    config.write_text("[server]\nhandshake_ms = 3000\n")
    arguments = ("--listen", "amqps://127.0.0.1:0", "--config", config, *certificates.arguments)
    with serving(tmp_path, *arguments) as broker, ExitStack() as stack:
        streams = [stack.enter_context(connected(broker.url)) for _ in range(100)]
        for stream in streams[::2]:
            stream.sendall(b"\x16\x03\x01\x02\x00")
        began = time.monotonic()
        assert run("send", "q", "x", "--url", broker.url, "--tls-ca", certificates.ca).exit_code == ExitCode.OK
        assert time.monotonic() - began < 2
        assert [answer(stream) for stream in streams] == [b""] * 100
        assert time.monotonic() - began < 8
        # Ten lines for each kind and address in a minute, whatever a hundred strangers do.
        assert broker.stderr_path.read_text().count("within handshake_ms") <= 10


def test_client_certificates_are_asked_for(tmp_path: Path, certificates: Certificates) -> None:
    """With --tls-ca a certificate of another authority ends the handshake, and none is allowed unless required."""
    config = tmp_path / "broker.toml"
    config.write_text("[listeners]\ntls_client_required = true\n")
    arguments = ("--tls-ca", certificates.ca, "--config", config, *certificates.arguments)
    with serving(tmp_path, "--listen", "amqps://localhost:0", *arguments) as broker:
        good, stranger = certificates.context(), certificates.context()
        good.load_cert_chain(*certificates.issue("carol", "carol.example.org"))
        stranger.load_cert_chain(*certificates.issue("mallory", "carol.example.org", authority=trustme.CA()))
        with good.wrap_socket(connected(broker.url), server_hostname="localhost") as stream:
            stream.sendall(SASL_HEADER)
            assert stream.recv(8) == SASL_HEADER
        for context in (stranger, certificates.context()):
            with pytest.raises(OSError, match=r"alert|reset|EOF"):  # noqa: SIM117, PT012 - TLS 1.3 fails with the first read
                with context.wrap_socket(connected(broker.url), server_hostname="localhost") as stream:
                    stream.sendall(SASL_HEADER)
                    if not stream.recv(8):
                        raise ConnectionResetError("reset")
        assert logged(broker, "no client certificate (tls_client_required)")
        assert logged(broker, "the client certificate cannot be verified")


def test_other_protocols_get_a_readable_answer(tmp_path: Path) -> None:
    """HTTP is answered in HTTP, TLS and AMQP's own TLS header by AMQP's header; the log names them without hex."""
    with serving(tmp_path) as broker:
        with connected(broker.url) as stream:
            stream.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert answer(stream).decode().startswith("HTTP/1.1 400 Bad Request\r\n")
        for header in (TLS_HEADER, b"\x16\x03\x01\x02\x00\x01\x00\x01"):
            with connected(broker.url) as stream:
                stream.sendall(header)
                assert answer(stream)[:8] == AMQP_HEADER
        assert logged(broker, "an HTTP request on a listener of AMQP")
        assert logged(broker, "a TLS header within AMQP")
        assert logged(broker, "a TLS handshake on a listener without TLS")
        assert "474554" not in broker.stderr_path.read_text()


def test_http_on_a_listener_with_tls_is_named(tmp_path: Path, certificates: Certificates) -> None:
    """OpenSSL knows it."""
    with serving(tmp_path, "--listen", "amqps://127.0.0.1:0", *certificates.arguments) as broker:
        with connected(broker.url) as stream:
            stream.sendall(b"GET / HTTP/1.1\r\n\r\n")
            answer(stream)
        with connected(broker.url) as stream:
            stream.sendall(SASL_HEADER)
            answer(stream)
        assert logged(broker, "TLS: an HTTP request, expected a TLS handshake")
        assert logged(broker, "TLS: no TLS handshake: the peer speaks a plain protocol")


def test_a_peer_is_local_by_its_own_address(run: Run, tmp_path: Path) -> None:
    """On all interfaces, peers of this machine need no name; others do. The listener's address does not decide."""
    config = tmp_path / "broker.toml"
    config.write_text('[listeners]\nlisten = ["amqp://0.0.0.0:0"]\n')
    refused = run("serve", "--data", tmp_path / "data", "--config", config)
    assert (refused.exit_code, "no client could log in on 0.0.0.0" in refused.stderr) == (ExitCode.USAGE, True)
    config.write_text(
        '[listeners]\nlisten = ["amqp://127.0.0.1:0"]\nproxy_protocol = true\nproxy_trusted = ["127.0.0.1"]\n'
    )
    with serving(tmp_path, "--config", config) as broker:
        # A proxy on this machine reports a client of another one.
        for source, is_local in (("203.0.113.7", False), ("127.0.0.1", True)):
            with connected(broker.url) as stream:
                stream.sendall(f"PROXY TCP4 {source} 127.0.0.1 40000 5672\r\n".encode() + SASL_HEADER)
                mechanisms = stream.recv(4096)
                while len(mechanisms) < 9:
                    mechanisms += stream.recv(4096)
            assert (b"ANONYMOUS" in mechanisms) is is_local
        with connected(broker.url) as stream:
            stream.sendall(b"PROXY TCP4 203.0.113.7 127.0.0.1 40000 5672\r\n" + AMQP_HEADER)
            assert answer(stream) == SASL_HEADER


def test_a_proxy_must_send_its_header_in_time(tmp_path: Path) -> None:
    """One that is cut at any byte, malformed or missing ends the connection; a whole one in pieces does not."""
    config = tmp_path / "broker.toml"
    trusted = 'proxy_protocol = true\nproxy_trusted = ["127.0.0.0/8"]\n'
    config.write_text(f"[server]\nhandshake_ms = 2000\n[listeners]\n{trusted}")
    header = b"PROXY TCP4 203.0.113.7 127.0.0.1 40000 5672\r\n"
    with serving(tmp_path, "--config", config) as broker, ExitStack() as stack:
        with connected(broker.url) as stream:
            stream.sendall(header[:9])
        assert logged(broker, "before its header was complete")
        cuts = []
        for cut in range(len(header)):
            cuts.append(stack.enter_context(connected(broker.url)))
            cuts[-1].sendall(header[:cut])
        with connected(broker.url) as stream:
            for byte in header + AMQP_HEADER:
                stream.sendall(bytes([byte]))
            assert answer(stream) == SASL_HEADER
        with connected(broker.url) as stream:
            stream.sendall(AMQP_HEADER)
            assert answer(stream) == b""
        assert logged(broker, "the first bytes are no header of the PROXY protocol")
        assert [answer(stream) for stream in cuts] == [b""] * len(header)
        assert logged(broker, "no complete header of the PROXY protocol within handshake_ms")


def test_a_header_of_a_stranger_is_no_header(tmp_path: Path) -> None:
    """Only trusted proxies name clients: from any other peer the header is a wrong first byte."""
    config = tmp_path / "broker.toml"
    config.write_text('[listeners]\nproxy_protocol = true\nproxy_trusted = ["198.51.100.0/24"]\n')
    with serving(tmp_path, "--config", config) as broker, connected(broker.url) as stream:
        stream.sendall(b"PROXY TCP4 203.0.113.7 127.0.0.1 40000 5672\r\n")
        assert answer(stream) == AMQP_HEADER
        assert logged(broker, "a header of the PROXY protocol from a peer that is not in proxy_trusted")


def test_commands_of_a_directory_need_no_password(run: Run, tmp_path: Path) -> None:
    """The socket is for the owner alone, also after a kill, and a virtual host is reached through it."""
    config = tmp_path / "broker.toml"
    config.write_text('[users]\nalice = "secret"\n')
    broker = ChildBroker(tmp_path / "data", arguments=["--config", str(config)])
    try:
        for _ in range(2):
            broker.start()
            path = broker.directory / "broker.sock"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert run("send", "q", "x", "--data", broker.directory).exit_code == ExitCode.OK
            assert run("send", "q", "x", "--url", broker.url).exit_code != ExitCode.OK
            broker.kill()
            assert path.exists()
        broker.start()
        assert run("vhost", "create", "other", "--data", broker.directory).exit_code == ExitCode.OK
        assert run("send", "q", "x", "--data", broker.directory, "--vhost", "other").exit_code == ExitCode.OK
        assert run("queue", "list", "--data", broker.directory).exit_code == ExitCode.OK
    finally:
        broker.stop()
    assert not path.exists()


def test_a_long_directory_has_an_abstract_socket(run: Run, tmp_path: Path) -> None:
    """The lock file has its name; users are configured, so only the socket lets a command in."""
    place = tmp_path / ("p" * 100)
    place.mkdir()
    with serving(place, "--user", "alice:secret") as broker:
        assert '"socket":"@ambermq-' in (broker.directory / "lock").read_text()
        assert run("send", "q", "x", "--data", broker.directory).exit_code == ExitCode.OK
        assert not (broker.directory / "broker.sock").exists()


class WebSocketClient:
    """A client of WebSocket by hand."""

    def __init__(self, stream: socket.socket, *, subprotocols: tuple[str, ...] = ("amqp",), origin: str = "") -> None:
        self.stream = stream
        self.websocket = WSConnection(ConnectionType.CLIENT)
        headers = [(b"origin", origin.encode())] if origin else []
        self.send(Request(host="localhost", target="/", subprotocols=[*subprotocols], extra_headers=headers))

    def send(self, event: Event) -> None:
        """Send one event."""
        self.stream.sendall(self.websocket.send(event))

    def events(self, is_last: Callable[[Event], bool]) -> list[Event]:
        """Return the events up to a wanted one, or to the end of the connection."""
        found: list[Event] = []
        while not any(map(is_last, found)):
            data = self.stream.recv(65536)
            self.websocket.receive_data(data or None)
            found += self.websocket.events()
            if not data:
                break
        return found


def kinds(events: list[Event]) -> list[str]:
    """Return the names of events."""
    return [type(event).__name__ for event in events]


@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_amqp_goes_through_websocket(tmp_path: Path, certificates: Certificates, scheme: str) -> None:
    """The bytes of AMQP are cut into messages and frames anywhere; pings are answered in between."""
    listen = ("--listen", f"{scheme}://localhost:0", *certificates.arguments)
    with serving(tmp_path, *listen) as broker:
        assert broker.url.startswith(f"{scheme}://")
        raw = connected(broker.url)
        stream = raw if scheme == "ws" else certificates.context().wrap_socket(raw, server_hostname="localhost")
        with stream:
            client = WebSocketClient(stream)
            (accepted,) = client.events(lambda event: isinstance(event, AcceptConnection))
            assert isinstance(accepted, AcceptConnection)
            assert accepted.subprotocol == "amqp"
            for byte in SASL_HEADER[:5]:
                client.send(BytesMessage(data=bytes([byte])))
            client.send(Ping(payload=b"p"))
            client.send(BytesMessage(data=SASL_HEADER[5:7], message_finished=False))
            client.send(BytesMessage(data=SASL_HEADER[7:]))
            events = client.events(lambda event: isinstance(event, BytesMessage))
            assert isinstance(events[0], Pong)
            assert isinstance(events[1], BytesMessage)
            assert bytes(events[1].data).startswith(SASL_HEADER)
            # A frame that is no SASL frame: the connection ends with a close of WebSocket.
            client.send(BytesMessage(data=b"\0\0\0\x08\2\0\0\0"))
            assert "CloseConnection" in kinds(client.events(lambda event: isinstance(event, CloseConnection)))


@pytest.mark.parametrize(
    ("subprotocols", "origin", "reason"),
    [
        ((), "", "does not offer the subprotocol amqp"),
        (("mqtt",), "", "does not offer the subprotocol amqp"),
        (("amqp",), "https://evil.example.org", "is not in websocket_origins"),
    ],
)
def test_an_upgrade_is_refused(tmp_path: Path, subprotocols: tuple[str, ...], origin: str, reason: str) -> None:
    """Without the subprotocol, and from a web page: any page in a browser of this machine would get in."""
    with serving(tmp_path, "--listen", "ws://127.0.0.1:0") as broker, connected(broker.url) as stream:
        client = WebSocketClient(stream, subprotocols=subprotocols, origin=origin)
        assert "RejectConnection" in kinds(client.events(lambda _: False))
        assert logged(broker, reason)


def test_websocket_has_bounds(tmp_path: Path) -> None:
    """Of the request, of a message, of the time; text, plain HTTP and AMQP without WebSocket end the connection."""
    config = tmp_path / "broker.toml"
    config.write_text("[server]\nhandshake_ms = 2000\n[listeners]\nwebsocket_message_bytes_max = 1000\n")
    with serving(tmp_path, "--listen", "ws://127.0.0.1:0", "--config", config) as broker:
        with connected(broker.url) as stream:
            stream.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert answer(stream).startswith(b"HTTP/1.1 400 ")
        for start in (b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000, SASL_HEADER, b"GET / HTTP/1.1\r\n"):
            with connected(broker.url) as stream:
                stream.sendall(start)
                answer(stream)
        for event in (TextMessage(data="x"), BytesMessage(data=b"\0" * 1001)):
            with connected(broker.url) as stream:
                client = WebSocketClient(stream)
                client.events(lambda event: isinstance(event, AcceptConnection))
                client.send(event)
                assert "CloseConnection" in kinds(client.events(lambda _: False))
        assert logged(broker, "no complete handshake within handshake_ms")


def test_a_rhea_like_origin_may_be_configured(tmp_path: Path) -> None:
    """A web page whose origin is named may connect."""
    config = tmp_path / "broker.toml"
    config.write_text('[listeners]\nwebsocket_origins = ["https://app.example.org"]\n')
    with serving(tmp_path, "--listen", "ws://127.0.0.1:0", "--config", config) as broker:
        with connected(broker.url) as stream:
            client = WebSocketClient(stream, subprotocols=("AMQPWSB10",), origin="https://app.example.org")
            (accepted,) = client.events(lambda event: isinstance(event, AcceptConnection))
        assert isinstance(accepted, AcceptConnection)
        assert accepted.subprotocol == "AMQPWSB10"
