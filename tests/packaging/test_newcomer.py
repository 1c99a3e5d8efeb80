"""The newcomer's path is open: from a clean clone to an upgrade in place, without a registry."""

import shutil
import subprocess
import sys

import pytest

from tests.signposts import ROOT

_STEPS = ("clone", "install", "secure", "refuse", "messages", "metrics", "snapshot", "upgrade", "the path is open")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the checkout is no clone: there is nothing to clone from")
def test_the_path_is_open() -> None:
    """Each step is told; the installed command is that of the commit that is checked out."""
    command = [sys.executable, "-m", "tests.packaging.newcomer", "--offline"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(line.startswith(step) for line, step in zip(done.stdout.splitlines(), _STEPS, strict=True))
