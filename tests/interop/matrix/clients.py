"""The columns of the matrix.

Versions stand in the manifest of each driver, pinned to the last digit; the page names them.
"""

import json
import re
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.interop.matrix.client import BUILD, HERE, Client

__all__ = ["CLIENTS"]


def _pinned(file: str, pattern: str) -> Callable[[], str]:
    def read() -> str:
        found = re.search(pattern, (HERE / file).read_text(encoding="utf-8"))
        assert found is not None, f"{file} pins no version"
        return found[1]

    return read


_RHEA: Final = HERE.parent / "rhea"


def _rhea() -> str:
    pinned: str = json.loads((_RHEA / "package.json").read_text())["dependencies"]["rhea"]
    return pinned


def _is_rhea_there() -> bool:
    package = _RHEA / "node_modules" / "rhea" / "package.json"
    return package.is_file() and bool(json.loads(package.read_text())["version"] == _rhea())


_ROOT: Final = Path(__file__).parents[3]
_AZURE: Final = BUILD / "azure"

CLIENTS: Final = (
    Client(
        name="proton",
        title="Qpid Proton, Python",
        version=lambda: version("python-qpid-proton"),
        tools=(),
        builds=(),
        command=(sys.executable, "-m", "tests.interop.matrix.proton.driver"),
        place=_ROOT,
    ),
    Client(
        name="rhea",
        title="rhea, Node.js",
        version=_rhea,
        tools=("node", "npm"),
        builds=(("npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"),),
        is_built=_is_rhea_there,
        command=("node", str(HERE / "rhea" / "driver.js")),
        place=_RHEA,
    ),
    Client(
        name="jms",
        title="Qpid JMS, Java",
        version=_pinned("jms/pom.xml", r"<qpid-jms.version>([^<]+)<"),
        tools=("java", "mvn"),
        builds=(("mvn", "--quiet", "--batch-mode", f"-Dmade.directory={BUILD / 'jms'}", "package"),),
        command=("java", "-cp", f"{BUILD / 'jms' / 'classes'}:{BUILD / 'jms' / 'lib'}/*", "matrix.Driver"),
        place=HERE / "jms",
    ),
    Client(
        name="go",
        title="go-amqp, Go",
        version=_pinned("go/go.mod", r"github.com/Azure/go-amqp v(\S+)"),
        tools=("go",),
        builds=(("go", "build", "-o", str(BUILD / "go" / "driver"), "."),),
        command=(str(BUILD / "go" / "driver"),),
        place=HERE / "go",
    ),
    Client(
        name="rust",
        title="fe2o3-amqp, Rust",
        version=_pinned("rust/Cargo.toml", r'\nfe2o3-amqp = "=([^"]+)"'),
        tools=("cargo",),
        builds=(("cargo", "build", "--quiet", "--target-dir", str(BUILD / "rust")),),
        command=(str(BUILD / "rust" / "debug" / "driver"),),
        place=HERE / "rust",
    ),
    Client(
        name="azure",
        title="Azure Service Bus SDK, Python",
        version=_pinned("azure/requirements.txt", r"azure-servicebus==(\S+)"),
        tools=("python3",),
        builds=(
            ("python3", "-m", "venv", str(_AZURE)),
            (str(_AZURE / "bin" / "pip"), "install", "--quiet", "-r", "requirements.txt"),
        ),
        command=(str(_AZURE / "bin" / "python"), "driver.py"),
        place=HERE / "azure",
    ),
)
"""In the order of the page."""
