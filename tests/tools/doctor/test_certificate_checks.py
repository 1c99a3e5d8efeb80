"""What the doctor says of certificates."""

import datetime as dt
from pathlib import Path

import pytest
import trustme

from ambermq.protocol.server.listeners.listener_config import ListenerConfig
from ambermq.tools.doctor.certificate_checks import check_certificates
from ambermq.tools.doctor.finding import Level
from tests.tools.conftest import Run

_NOW = dt.datetime(2027, 1, 1, tzinfo=dt.UTC)


def config_of(place: Path, days: float) -> ListenerConfig:
    """Return a configuration whose certificate is valid for so many days."""
    leaf = trustme.CA().issue_cert("localhost", not_after=_NOW + dt.timedelta(days=days))
    path = place / "cert.pem"
    path.write_bytes(leaf.cert_chain_pems[0].bytes())
    return ListenerConfig(tls_cert=str(path))


@pytest.mark.parametrize(
    ("days", "level", "found"),
    [
        (400, Level.OK, "valid until 2028-02-05, 400 days"),
        (30, Level.OK, "valid until 2027-01-31, 30 days"),
        (29.9, Level.WARNING, "valid until 2027-01-30, 29 days"),
        (0.5, Level.WARNING, "valid until 2027-01-01, 0 days"),
        (0, Level.FAULT, "ended on 2027-01-01"),
        (-1, Level.FAULT, "ended on 2026-12-31"),
    ],
)
def test_thirty_days_ahead_is_a_warning(tmp_path: Path, days: float, level: Level, found: str) -> None:
    """And the end is a fault: clients refuse the broker."""
    (finding,) = check_certificates(config_of(tmp_path, days), _NOW.timestamp())
    assert (finding.level, finding.found) == (level, f"{tmp_path}/cert.pem: {found}")
    assert bool(finding.advice) == (level is not Level.OK)


def test_what_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    """A missing file, and one without a certificate."""
    (tmp_path / "empty").write_bytes(b"")
    config = ListenerConfig(tls_cert=str(tmp_path / "none"), tls_ca=str(tmp_path / "empty"))
    findings = list(check_certificates(config, 0))
    assert [finding.level for finding in findings] == [Level.FAULT, Level.FAULT]
    assert "No such file" in findings[0].found
    assert findings[1].found.endswith("no certificate")


def test_the_command_reads_the_configuration(run: Run, tmp_path: Path) -> None:
    """A mistake in it is a finding, and not the end of the command."""
    (tmp_path / "broker.toml").write_text(f'[listeners]\ntls_cert = "{tmp_path}/none"\n')
    done = run("doctor", "--data", tmp_path, "--config", tmp_path / "broker.toml")
    assert "fault    tls_cert: " in done.stdout
    (tmp_path / "broker.toml").write_text("[listeners]\ntls_crt = 1\n")
    done = run("doctor", "--data", tmp_path, "--config", tmp_path / "broker.toml")
    assert "fault    configuration: " in done.stdout
    assert done.exit_code == 1
