"""`ambermq serve`: the options of the command line become the configuration of a broker, which then runs."""

import os
from typing import Final

import click

from ambermq.protocol.server.listeners.listener_address import ListenerAddress
from ambermq.tools.broker.http.http_terms import http_terms
from ambermq.tools.broker.listening import parse_listeners
from ambermq.tools.broker.process_tuning import configure_logging
from ambermq.tools.broker.serve import Broker
from ambermq.tools.broker.users.start_checks import check_users
from ambermq.tools.broker.users.user_file import load_users
from ambermq.tools.client.broker_option import data_directory
from ambermq.tools.config.layers import Entry
from ambermq.tools.config.resolution import SettingsSource
from ambermq.tools.config.settings import LOG_FORMATS, LOG_LEVELS
from ambermq.tools.terminal.variables import read_variable

__all__ = ["serve"]

CONFIG_VARIABLE: Final = "AMBERMQ_CONFIG"


@click.command(epilog="Example: ambermq serve --data ./data --port 0 --user alice:secret")
@click.option("--data", metavar="DIR", help="Data directory, created if missing. Default: AMBERMQ_DATA.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Interface to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=5672,
    show_default=True,
    help="Port to listen on; 0 chooses a free one.",
)
@click.option(
    "--listen",
    "listen",
    multiple=True,
    metavar="ADDRESS",
    help="Listener instead of --host and --port: amqp://HOST:PORT, or with amqps, ws or wss, or unix:PATH.",
)
@click.option("--tls-cert", metavar="FILE", help="Certificate of the broker with its chain (PEM).")
@click.option("--tls-key", metavar="FILE", help="Private key of the certificate (PEM); no other user may read it.")
@click.option("--tls-ca", metavar="FILE", help="Authorities that sign client certificates (PEM).")
@click.option(
    "--user", "users", multiple=True, metavar="NAME:PASSWORD", help="User and password of a client; may be repeated."
)
@click.option(
    "--anonymous/--no-anonymous",
    default=None,
    help="Allow clients without a user name. Default: only on loopback when no user is configured.",
)
@click.option(
    "--auto-create/--no-auto-create",
    default=None,
    help="Create queues at unknown addresses. Default: the key auto_create, or yes.",
)
@click.option(
    "--log-level",
    type=click.Choice(LOG_LEVELS),
    help="Lowest level of log lines to print. Default: the key level of [logging], or info.",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    help="Configuration file (TOML). Default: AMBERMQ_CONFIG.",
)
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="TABLE.KEY=VALUE",
    help="Value of a key of the configuration, before file and environment; may be repeated.",
)
@click.option(
    "--log-format",
    type=click.Choice(LOG_FORMATS),
    help="Log lines as JSON, or for people; auto: by terminal. Default: the key format of [logging], or auto.",
)
@click.option(
    "--http", metavar="HOST:PORT", help="Listener for /healthz, /readyz and /metrics. Default: the key http, or none."
)
def serve(
    data: str | None,
    host: str,
    port: int,
    listen: tuple[str, ...],
    tls_cert: str | None,
    tls_key: str | None,
    tls_ca: str | None,
    users: tuple[str, ...],
    anonymous: bool | None,
    auto_create: bool | None,
    log_level: str | None,
    log_format: str | None,
    http: str | None,
    config: str | None,
    assignments: tuple[str, ...],
) -> None:
    """Run the broker on the directory DIR until SIGTERM or SIGINT.

    Prints `ready amqp://HOST:PORT data=DIR` on standard output when it serves. Log lines go to standard error. SIGHUP
    reads the configuration again. Exits 1
    if another broker has locked DIR, 5 if its log is damaged, 74 if the log cannot be written.
    """
    directory = data_directory(data, must_exist=False)
    entries = {f"users.{name}": Entry(password, "--user", "--user") for name, password in _parse_users(users).items()}
    if auto_create is not None:
        option = "--auto-create" if auto_create else "--no-auto-create"
        entries["engine.auto_create"] = Entry(auto_create, option, option)
    if log_level is not None:
        entries["logging.level"] = Entry(log_level, "--log-level", "--log-level")
    if log_format is not None:
        entries["logging.format"] = Entry(log_format, "--log-format", "--log-format")
    if http is not None:
        entries["server.http"] = Entry(http, "--http", "--http")
    for name, value in (("listen", listen), ("tls_cert", tls_cert), ("tls_key", tls_key), ("tls_ca", tls_ca)):
        if value:
            option = f"--{name.replace('_', '-')}"
            entries[f"listeners.{name}"] = Entry(value, option, option)
    source = SettingsSource(config or read_variable(CONFIG_VARIABLE) or None, dict(os.environ), assignments, entries)
    found = source.load()
    plain = ListenerAddress("amqp", host, port)
    listeners = found.settings.listeners
    where = found.origins.get("listeners.listen", "--listen")
    addresses = parse_listeners(listeners.listen, where) or (plain,)
    users_stored = load_users(directory, found.settings.server.scram_iterations)
    check_users(found, addresses, users_stored, anonymous)
    terms = http_terms(found.settings, has_users=bool(found.settings.users) or len(users_stored.stored()) > 0)
    configure_logging(found.settings.logging.level, found.settings.logging.format)
    Broker(directory, addresses, found.settings, anonymous, source, found.origins, terms).run()


def _parse_users(users: tuple[str, ...]) -> dict[str, str]:
    parsed = {}
    for user in users:
        name, _, password = user.partition(":")
        if not name or not password:
            raise click.UsageError("--user: expected NAME:PASSWORD, both not empty")
        parsed[name] = password
    return parsed
