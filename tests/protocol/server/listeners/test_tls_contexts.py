"""Certificates: which are used, which are refused, and what happens when they change."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from ambermq.protocol.server.listeners.listener_config import ListenerConfig
from ambermq.protocol.server.listeners.tls_contexts import TlsContexts, TlsFault


def written(place: Path, authority: trustme.CA | None = None) -> ListenerConfig:
    """Write a pair for localhost, and return the configuration that names it."""
    authority = authority or trustme.CA()
    leaf = authority.issue_cert("localhost")
    place.mkdir(exist_ok=True)
    (place / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
    (place / "key.pem").write_bytes(leaf.private_key_pem.bytes())
    (place / "key.pem").chmod(0o600)
    authority.cert_pem.write_to_path(place / "ca.pem")
    return ListenerConfig(
        tls_cert=str(place / "cert.pem"), tls_key=str(place / "key.pem"), tls_ca=str(place / "ca.pem")
    )


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644, 0o666])
def test_a_key_that_others_read_is_refused(tmp_path: Path, mode: int) -> None:
    """With the command that mends it."""
    config = written(tmp_path)
    Path(config.tls_key).chmod(mode)
    with pytest.raises(TlsFault, match=f"mode 0{mode:o}; run chmod 600 "):
        TlsContexts(config)


def test_a_pair_that_does_not_fit_keeps_the_old_one(tmp_path: Path) -> None:
    """The failure is kept until a pair fits again."""
    config = written(tmp_path)
    contexts = TlsContexts(config)
    before = contexts.context
    assert not contexts.is_changed()
    other = written(tmp_path / "other")
    Path(other.tls_key).replace(config.tls_key)
    assert contexts.is_changed()
    with pytest.raises(TlsFault, match="key values mismatch"):
        contexts.reload()
    assert contexts.context is before
    assert contexts.failure
    assert not contexts.is_changed()
    Path(other.tls_cert).replace(config.tls_cert)
    assert contexts.is_changed()
    contexts.reload()
    assert contexts.context is not before
    assert not contexts.failure


@pytest.mark.parametrize("key", ["tls_cert", "tls_key", "tls_ca", "tls_crl"])
@pytest.mark.parametrize(
    "content", [None, b"", b"no PEM", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_a_wrong_file_is_one_clear_fault(tmp_path: Path, key: str, content: bytes | None) -> None:
    """A missing, empty or damaged one."""
    config = written(tmp_path)
    path = tmp_path / "wrong.pem"
    if content is not None:
        path.write_bytes(content)
        path.chmod(0o600)
    with pytest.raises(TlsFault, match=r"wrong\.pem"):
        TlsContexts(replace(config, **{key: str(path)}))  # type: ignore[arg-type]  # a name of the parameters above


def test_an_encrypted_key_does_not_ask_at_a_terminal(tmp_path: Path) -> None:
    """A broker has none."""
    from cryptography.hazmat.primitives import serialization

    config = written(tmp_path)
    path = Path(config.tls_key)
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    path.write_bytes(encrypted)
    with pytest.raises(TlsFault, match="the key is encrypted"):
        TlsContexts(config)


def test_a_key_of_root_may_be_read_by_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So distributions keep it: 0640 root:ssl-cert."""
    if os.geteuid() != 0:
        pytest.skip("only root makes a file of root")
    config = written(tmp_path)
    Path(config.tls_key).chmod(0o640)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    TlsContexts(config)
