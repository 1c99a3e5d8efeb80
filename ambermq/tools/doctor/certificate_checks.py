"""The checks of the certificates in the configuration: how long they last."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ambermq.protocol.server.listeners.certificate_expiry import certificate_ends
from ambermq.protocol.server.listeners.listener_config import ListenerConfig
from ambermq.tools.doctor.finding import Finding, Level

__all__ = ["check_certificates"]

_DAY_S: Final = 86_400
_WARNING_DAYS: Final = 30
_RENEW: Final = "renew it; the broker reads the file again within a minute, or at `ambermq config reload`"


def check_certificates(config: ListenerConfig, now_s: float) -> Iterator[Finding]:
    """Yield a finding for each file with certificates; one that says so if none is configured."""
    files = {name: path for name in ("tls_cert", "tls_ca") if (path := getattr(config, name))}
    if not files:
        yield Finding("certificates", Level.OK, "none are configured")
    for name, path in files.items():
        yield _check(name, path, now_s)


def _check(name: str, path: str, now_s: float) -> Finding:
    try:
        ends = certificate_ends(Path(path).read_bytes())
    except OSError as error:
        return Finding(name, Level.FAULT, f"{path}: {error.strerror or error}", f"check {name}: no broker starts so")
    if not ends:
        return Finding(name, Level.FAULT, f"{path}: no certificate", "name a file with certificates in PEM")
    end_s = min(ends)
    days = int((end_s - now_s) // _DAY_S)
    date = datetime.fromtimestamp(end_s, UTC).date().isoformat()
    if end_s <= now_s:
        return Finding(name, Level.FAULT, f"{path}: ended on {date}", _RENEW)
    found = f"{path}: valid until {date}, {days:,} days"
    return Finding(
        name, Level.WARNING if days < _WARNING_DAYS else Level.OK, found, _RENEW if days < _WARNING_DAYS else ""
    )
