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


def _npm_pinned(manifest: Path, package: str) -> Callable[[], str]:
    def read() -> str:
        pinned: str = json.loads(manifest.read_text(encoding="utf-8"))["dependencies"][package]
        return pinned

    return read


def _is_npm_there(place: Path, package: str, pinned: Callable[[], str]) -> Callable[[], bool]:
    """Return whether the modules of a place have the package in the version that is pinned."""
    manifest = place / "node_modules" / package / "package.json"

    def is_there() -> bool:
        return manifest.is_file() and bool(json.loads(manifest.read_text(encoding="utf-8"))["version"] == pinned())

    return is_there


def _jvm(name: str, title: str, product: str, *, jar: str = "", is_framework: bool = False) -> Client:
    """Return a client of the Maven project, built with the module that all share; a `jar` has all it needs."""
    made = BUILD / "jvm"
    place = made / name
    start = ("-jar", str(place / jar)) if jar else ("-cp", f"{place / 'classes'}:{place / 'lib'}/*", "matrix.Main")
    maven = ("mvn", "--quiet", "--batch-mode", f"-Dmade.directory={made}")
    return Client(
        name=name,
        title=title,
        version=_pinned("jvm/pom.xml", rf"<{product}.version>([^<]+)<"),
        tools=("java", "mvn"),
        builds=((*maven, "--projects", name, "--also-make", "package"),),
        command=("java", *start),
        place=HERE / "jvm",
        is_framework=is_framework,
    )


_ROOT: Final = Path(__file__).parents[3]
_NPM_INSTALL: Final = ("npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
_RHEA: Final = HERE.parent / "rhea"
_RHEA_PINNED: Final = _npm_pinned(_RHEA / "package.json", "rhea")
_AZURE: Final = BUILD / "azure"
_AZURE_NODE: Final = BUILD / "azure-node"
_AZURE_NODE_PINNED: Final = _npm_pinned(HERE / "azure-node" / "package.json", "@azure/service-bus")

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
        version=_RHEA_PINNED,
        tools=("node", "npm"),
        builds=(_NPM_INSTALL,),
        is_built=_is_npm_there(_RHEA, "rhea", _RHEA_PINNED),
        command=("node", str(HERE / "rhea" / "driver.js")),
        place=_RHEA,
    ),
    _jvm("jms", "Qpid JMS, Java", "qpid-jms"),
    _jvm("spring", "Spring JMS, Java", "spring", is_framework=True),
    _jvm("camel", "Camel JMS, Java", "camel", is_framework=True),
    _jvm("vertx", "Vert.x AMQP client, Java", "vertx", is_framework=True),
    _jvm("quarkus", "Quarkus Messaging, Java", "quarkus", jar="quarkus-app/quarkus-run.jar", is_framework=True),
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
        version=_pinned("rust/Cargo.toml", r'\[dependencies.fe2o3-amqp\]\nversion = "=([^"]+)"'),
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
    Client(
        name="azure-node",
        title="Azure Service Bus SDK, Node.js",
        version=_AZURE_NODE_PINNED,
        tools=("node", "npm"),
        builds=(
            ("mkdir", "-p", str(_AZURE_NODE)),
            ("cp", "package.json", str(_AZURE_NODE)),
            (*_NPM_INSTALL, "--prefix", str(_AZURE_NODE)),
        ),
        is_built=_is_npm_there(_AZURE_NODE, "@azure/service-bus", _AZURE_NODE_PINNED),
        command=("env", f"NODE_PATH={_AZURE_NODE / 'node_modules'}", "node", "driver.js"),
        place=HERE / "azure-node",
    ),
)
"""In the order of the page."""
