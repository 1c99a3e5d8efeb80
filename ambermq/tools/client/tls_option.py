"""The options --tls-ca, --tls-cert and --tls-key of the commands that connect to a broker.

Rule. An option is put into the environment of the process, since threads and child processes connect too. It names a
      file, which is no secret.
"""

import os
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import click

__all__ = [
    "CA_VARIABLE",
    "CERT_VARIABLE",
    "KEY_VARIABLE",
    "TlsFiles",
    "broker_tls_options",
    "offer_tls_files",
    "tls_files",
    "tls_options",
]

CA_VARIABLE: Final = "AMBERMQ_TLS_CA"
CERT_VARIABLE: Final = "AMBERMQ_TLS_CERT"
KEY_VARIABLE: Final = "AMBERMQ_TLS_KEY"
_OPTIONS: Final = (
    ("key", KEY_VARIABLE, "Private key of --tls-cert (PEM)."),
    ("cert", CERT_VARIABLE, "Client certificate for amqps:// (PEM)."),
    ("ca", CA_VARIABLE, "Authorities that sign the broker's certificate (PEM)."),
)

_Command = TypeVar("_Command", bound=Callable[..., Any])


class TlsFiles(NamedTuple):
    """The files of a client; an empty text is none."""

    ca: str
    """The authorities of the broker's certificate; none: those of the system."""
    cert: str
    """The certificate of the client."""
    key: str
    """Its private key; none: it is in the file of the certificate."""


def tls_options(command: _Command) -> _Command:
    """Add the options to a command; `tls_files` has their values."""
    return _with_options(command, "--tls-")


def broker_tls_options(command: _Command) -> _Command:
    """Add the options as --to-ca, --to-cert and --to-key to a command whose --tls- options are those of a listener."""
    return _with_options(command, "--to-")


def _with_options(command: _Command, prefix: str) -> _Command:
    for name, variable, text in _OPTIONS:
        help_text = f"{text.replace('--tls-', prefix)} Default: {variable}."
        option = click.option(
            f"{prefix}{name}", metavar="FILE", expose_value=False, callback=_setter(variable), help=help_text
        )
        command = option(command)
    return command


def offer_tls_files(files: TlsFiles) -> None:
    """Use the files of a context, where neither an option nor the environment names one.

    A certificate and its key are one pair: those of the context are used together, or not at all.
    """
    pair = {CERT_VARIABLE: files.cert, KEY_VARIABLE: files.key}
    if any(os.environ.get(name) for name in pair):
        pair = {}
    for name, path in {CA_VARIABLE: files.ca, **pair}.items():
        if path and not os.environ.get(name):
            os.environ[name] = path


def tls_files() -> TlsFiles:
    """Return the files of the options and the environment."""
    return TlsFiles(*(os.environ.get(name, "") for name in (CA_VARIABLE, CERT_VARIABLE, KEY_VARIABLE)))


def _setter(variable: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def store(context: click.Context, option: click.Parameter, value: str | None) -> None:
        del context, option
        if value:
            os.environ[variable] = value

    return store
