"""The unit of systemd and the Dockerfile, by the tools that are on this machine."""

import re
import shutil
import subprocess

import pytest

from tests.signposts import ROOT

_UNIT = ROOT / "contrib/systemd/ambermq.service"
_ENGINES = ("docker", "podman")


def test_the_unit_says_what_the_broker_does() -> None:
    """It waits for READY=1, ends the broker in order, and does not restart where a restart mends nothing."""
    text = _UNIT.read_text()
    settings = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    assert settings["Type"] == "notify"
    assert settings["TimeoutStartSec"] == "infinity"
    assert set(settings["RestartPreventExitStatus"].split()) == {"2", "5"}
    assert settings["ExecStart"].split()[1] == "serve"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit() -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", str(_UNIT)], capture_output=True, text=True, check=False
    )
    faults = [line for line in done.stderr.splitlines() if "/opt/ambermq" not in line and "ambermq.service" in line]
    assert faults == []


def _engine() -> str | None:
    """Return a container engine that answers."""
    for name in _ENGINES:
        if shutil.which(name) and not subprocess.run([name, "info"], capture_output=True, check=False).returncode:
            return name
    return None


@pytest.mark.skipif(_engine() is None, reason="no container engine answers")
def test_the_image_serves() -> None:
    engine = _engine()
    assert engine is not None
    for base in set(re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)):
        if subprocess.run([engine, "pull", base], check=False, capture_output=True, timeout=600).returncode:
            pytest.skip(f"{engine} cannot pull {base}")
    subprocess.run([engine, "build", "--quiet", "--tag", "ambermq-test", str(ROOT)], check=True, capture_output=True)
    started = subprocess.run(
        [engine, "run", "--rm", "--detach", "--init", "ambermq-test"], check=True, capture_output=True, text=True
    )
    container = started.stdout.strip()
    try:
        command = [engine, "exec", container, "ambermq", "send", "orders", "hello", "--timeout", "30"]
        assert subprocess.run(command, check=False, capture_output=True, timeout=90).returncode == 0
        assert subprocess.run([engine, "exec", container, "id", "-u"], check=True, capture_output=True).stdout != b"0\n"
    finally:
        subprocess.run([engine, "kill", container], check=False, capture_output=True)
