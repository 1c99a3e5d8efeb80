"""Proton over TLS: its own handshake, certificates and SASL against a real broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from proton import ConnectionException, Message, SSLDomain
from proton.utils import BlockingConnection

from ambermq.tools.broker.child_broker import ChildBroker


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    leaf = authority.issue_cert("localhost")
    (tmp_path / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
    (tmp_path / "key.pem").touch(mode=0o600)
    (tmp_path / "key.pem").write_bytes(leaf.private_key_pem.bytes())
    return authority


@pytest.fixture
def secure(tmp_path: Path, authority: trustme.CA) -> Iterator[ChildBroker]:
    """A broker with TLS alone, one user, and an authority for client certificates."""
    assert authority is not None
    files = ("--tls-cert", "cert.pem", "--tls-key", "key.pem", "--tls-ca", "ca.pem")
    arguments = [str(tmp_path / word) if word.endswith(".pem") else word for word in files]
    listen = ("--listen", "amqps://localhost:0", "--user", "alice:secret")
    broker = ChildBroker(tmp_path / "data", arguments=[*arguments, *listen])
    broker.start()
    yield broker
    assert broker.stop() == 0


def domain(place: Path) -> SSLDomain:
    """Return a client's TLS that verifies the broker and its name."""
    found = SSLDomain(SSLDomain.MODE_CLIENT)
    found.set_trusted_ca_db(str(place / "ca.pem"))
    found.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    return found


def test_a_message_goes_through_tls(secure: ChildBroker, tmp_path: Path) -> None:
    """A small and a large one, in both directions, and a heartbeat's worth of connections."""
    for number, size in enumerate((10, 3_000_000)):
        connection = BlockingConnection(
            secure.url, ssl_domain=domain(tmp_path), user="alice", password="secret", allowed_mechs="PLAIN", timeout=30
        )
        body = bytes([number]) * size
        connection.create_sender("q").send(Message(body=body))
        receiver = connection.create_receiver("q", credit=1)
        assert bytes(receiver.receive().body) == body
        receiver.accept()
        connection.close()


def test_a_client_with_a_certificate_connects(secure: ChildBroker, authority: trustme.CA, tmp_path: Path) -> None:
    """One of the authority; one of another is refused in the handshake."""
    for issuer, is_known in ((authority, True), (trustme.CA(), False)):
        leaf = issuer.issue_cert("carol.example.org")
        leaf.private_key_and_cert_chain_pem.write_to_path(tmp_path / "carol.pem")
        tls = domain(tmp_path)
        tls.set_credentials(str(tmp_path / "carol.pem"), str(tmp_path / "carol.pem"), None)
        options = {"user": "alice", "password": "secret", "allowed_mechs": "PLAIN", "timeout": 10}
        if is_known:
            BlockingConnection(secure.url, ssl_domain=tls, **options).close()
        else:
            with pytest.raises(ConnectionException):
                BlockingConnection(secure.url, ssl_domain=tls, reconnect=False, **options)
