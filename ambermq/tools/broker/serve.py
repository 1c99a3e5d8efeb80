"""The composition root: the one module that connects log, engine, gateway and server.

    settings -> process -> ports -> recovery -> engine -> server -> ready ... signal -> stop -> close the log

Rule 1: standard output has one line, `ready amqp://HOST:PORT data=DIR`, when the broker accepts connections. Further
        listeners follow in it as `listen=ADDRESS`. The process that started the broker waits for it. Everything else
        goes to standard error.
Rule 2: SIGTERM and SIGINT stop the broker in order. It accepts no more connections, closes the others with
        amqp:connection:forced, sends all effects that are due, and exits 0.
Rule 3: a failed log ends the broker at once with 74: after a failed sync it may promise nothing more.
"""

import asyncio
import os
import pwd
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

import structlog
import uvloop

from ambermq import __version__
from ambermq.engine.selectors.selector import prepare_parser
from ambermq.log.errors import LogFailed
from ambermq.log.manifest.manifest import manifest_path
from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.amqp10.spec import ConnectionCondition
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.auth.rules import Accounts
from ambermq.protocol.auth.sasl.authenticator import BrokerAuthenticator
from ambermq.protocol.auth.sasl.login_throttle import LoginThrottle
from ambermq.protocol.auth.users import ADMINISTRATOR, User, Users
from ambermq.protocol.auth.verifier import configured_verifier
from ambermq.protocol.server.listeners.certificate_watch import CertificateWatch
from ambermq.protocol.server.listeners.listener import Listener
from ambermq.protocol.server.listeners.listener_address import ListenerAddress
from ambermq.protocol.server.listeners.tls_contexts import TlsContexts
from ambermq.protocol.server.listeners.unix_socket import bind_owner_socket, remove_owner_socket
from ambermq.protocol.server.server import Server
from ambermq.protocol.server_limits import ServerLimits
from ambermq.tools.audit.writer import AUDIT_DIRECTORY, AuditWriter
from ambermq.tools.broker.compaction_child import CompactionStarter
from ambermq.tools.broker.file_modes import check_owner, private_files
from ambermq.tools.broker.http.http_sockets import http_sockets, http_url
from ambermq.tools.broker.http.http_terms import HttpTerms
from ambermq.tools.broker.listening import (
    bound_listeners,
    in_order_of_announcement,
    listen_errors,
    load_certificates,
)
from ambermq.tools.broker.memory_limit import address_space_left, default_memory_bytes, process_memory_max
from ambermq.tools.broker.one_time_tokens import OneTimeTokens
from ambermq.tools.broker.process_tuning import (
    check_open_files,
    configure_logging,
    freeze_heap,
    raise_open_files,
    tune_interpreter,
    warn_of_slowness,
)
from ambermq.tools.broker.retention_notice import grace_seconds
from ambermq.tools.broker.service_notify import ServiceNotifier
from ambermq.tools.broker.settings_reload import SettingsReload
from ambermq.tools.broker.users.login_threads import LoginThreads
from ambermq.tools.broker.users.rule_store import RuleStore, with_users
from ambermq.tools.broker.users.start_checks import check_users
from ambermq.tools.broker.users.user_administration import UserAdministration
from ambermq.tools.broker.users.user_file import has_users_file, load_users, save_users
from ambermq.tools.broker.vhost_store import VhostStore
from ambermq.tools.config.resolution import Resolution, SettingsSource
from ambermq.tools.config.settings import Settings
from ambermq.tools.config.telemetry_settings import TelemetryConfig
from ambermq.tools.terminal.output import print_line

if TYPE_CHECKING:
    from ambermq.tools.broker.http.http_listener import HttpListener
    from ambermq.tools.broker.telemetry.telemetry import Telemetry

__all__ = ["Broker"]

_AUDIT_CHECK_SECONDS: Final = 0.2
_NAMES_SHOWN: Final = 200
"""The characters of a list of names in a log line."""
_SAVED_LATER: Final = "make room on the disk; the broker goes on, and tries again each minute"


@dataclass(frozen=True, slots=True)
class Broker:
    """The configuration of one broker."""

    directory: str
    """The data directory, as on the command line."""
    addresses: tuple[ListenerAddress, ...]
    """Where it listens, besides the unix socket of the directory; port 0: the system chooses a free port."""
    settings: Settings
    """The limits, the listeners and the users."""
    anonymous: bool | None = None
    """Whether clients without a user name are allowed; None: local ones, while the broker has no users."""
    source: SettingsSource = field(default_factory=SettingsSource)
    """The sources of the settings, which a reload reads again."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """The source of each setting that is no default."""
    http: HttpTerms | None = None
    """Where the HTTP listener listens, and on which terms; None for none."""

    def run(self) -> None:
        """Recover and serve until a signal or a failed log; raise LogError or ToolError if that fails."""
        descriptors_max = raise_open_files()
        check_open_files(descriptors_max)
        tune_interpreter()
        is_reload_early = _early_reload()
        telemetry = _telemetry(self.settings.telemetry)
        warn_of_slowness()
        https = self.http.secure_url if self.http else ""
        tls = load_certificates(self.addresses, self.settings.listeners, https)
        # Bound before the directory is touched: a port in use leaves nothing behind, not even an epoch in the log.
        with (
            bound_listeners(self.addresses) as listeners,
            http_sockets(self.http.place if self.http else None) as http,
            _disk_errors(self.directory),
            private_files(),
        ):
            check_owner(self.directory)
            users = load_users(self.directory, self.settings.server.scram_iterations)
            # Until the users are known, the rules allow nothing.
            rules = RuleStore(self.directory, Accounts(has_users=True))
            had_log = Path(manifest_path(self.directory)).exists()
            # Recovery waits for the disk meanwhile.
            preparation = Thread(target=prepare_parser, name="selector-parser")
            preparation.start()
            vhosts = VhostStore(self.directory, self.settings)
            try:
                with _answers_during_recovery(http, self.settings.server, vhosts, self.http, tls):
                    vhosts.recover()
            finally:
                preparation.join()
            try:
                self._configure(users)
                rules.set_accounts(self._accounts(users))
                freeze_heap()
                grace_s = grace_seconds(self.directory, self.settings.retention, had_log=had_log)
                uvloop.run(
                    self._serve(
                        *(vhosts, rules, listeners, tls, http, grace_s, descriptors_max, users, is_reload_early),
                        telemetry,
                    )
                )
            finally:
                vhosts.close()
                if telemetry is not None:
                    # After a failed log too: its last spans may tell why.
                    telemetry.close()
        structlog.get_logger().info("stopped", data=self.directory)

    def _configure(self, users: Users) -> None:
        """Add the users of the configuration to the stored ones, and store the secret that hides who exists."""
        iterations = self.settings.server.scram_iterations
        users.configure(_configured(users.secret, self.settings.users, iterations), iterations)
        if len(users) and not has_users_file(self.directory):
            try:
                save_users(self.directory, users.secret, users.stored())
            except OSError as error:
                # All users are of the configuration: nothing is lost, and UserAdministration saves the secret later.
                reason = error.strerror or str(error)
                structlog.get_logger().warning(
                    "users not saved", data=self.directory, reason=reason, advice=_SAVED_LATER
                )
        names = [user.name for user in users if not users.is_stored(user.name)]
        if names:
            structlog.get_logger().warning(
                "users of the configuration",
                users=", ".join(sorted(names))[:_NAMES_SHOWN],
                role=ADMINISTRATOR,
                advice="their passwords are readable there: move them with `ambermq user import`",
            )

    def _accounts(self, users: Users) -> Accounts:
        """Return what the configuration and the file of users say of users."""
        log_readers = frozenset(self.settings.permissions.log)
        return with_users(Accounts(log_readers=log_readers), users)

    async def _serve(
        self,
        vhosts: VhostStore,
        rules: RuleStore,
        listeners: Sequence[Listener],
        tls: TlsContexts | None,
        http: Sequence[socket.socket],
        grace_s: float,
        descriptors_max: int,
        users: Users,
        is_reload_early: Event,
        telemetry: "Telemetry | None",
    ) -> None:
        tokens = OneTimeTokens()
        reload = SettingsReload(self.source, Resolution(self.settings, self.origins))
        limits = self.settings.server
        logins = LoginThreads(limits)
        audit = self._open_audit()
        administration = UserAdministration(self.directory, users, limits, rules)
        authenticator = BrokerAuthenticator(
            users,
            LoginThrottle(limits),
            logins,
            redeem=tokens.redeem,
            allows_anonymous=self.anonymous,
            plain_without_tls=limits.plain_without_tls,
            cbs_anonymous=limits.cbs_anonymous,
            own_uid=os.getuid(),
            name_of_uid=_name_of_uid,
        )
        server = Server(
            vhosts.services,
            vhosts,
            limits=self.settings.connection,
            server_limits=_with_memory_limit(self.settings.server),
            container_id=f"ambermq-{vhosts.services[DEFAULT_VHOST].engine.log.log_id.hex()}",
            authenticator=authenticator,
            accounts=administration,
            audit=audit,
            configuration=reload,
            access=rules.access,
            rules=rules,
            address_space_left=address_space_left,
            descriptors_max=descriptors_max,
            process_memory_max=process_memory_max(),
            listener_config=self.settings.listeners,
            tls=tls,
            trace=telemetry.trace if telemetry is not None else None,
        )
        administration.server = server
        administration.save_missing()
        self._end_with_audit(server, audit)
        rules.serve(server)
        owner_socket = self._owner_socket()
        with listen_errors(self.addresses[0]):
            server.start([*listeners, *owner_socket])
        stop_signal = _stop_signal(reload.signal)
        watch, notifier = CertificateWatch(tls), ServiceNotifier()
        reload.hooks.append(watch.request)
        reloads = asyncio.get_running_loop().create_task(watch.run())
        listener = None
        if self.http is not None:
            listener = await self._http_listener(server, http, self.http, tls, reload)
        url = self._announce(listeners, owner_socket, vhosts, http)
        notifier.ready(f"serving {url}")
        starter = CompactionStarter(self.directory, self.settings, tokens, vhosts.services, grace_s=grace_s)
        self._prepare_reload(reload, server, users, rules, vhosts, starter)
        if is_reload_early.is_set():
            reload.signal()
        compactions = asyncio.get_running_loop().create_task(starter.run())
        await _first_of(stop_signal, server.stopped)
        compactions.cancel()
        reloads.cancel()
        await asyncio.wait([compactions, reloads])
        if server.failure is not None:
            audit.close()
            raise server.failure
        structlog.get_logger().info("stopping", data=self.directory)
        notifier.stopping()
        await administration.end()
        await reload.end()
        await server.stop()
        logins.close()
        notifier.close()
        audit.note("broker-stopped", None, None)
        audit.close()
        for one in owner_socket:
            remove_owner_socket(one)
        if listener is not None:
            await listener.close()
        if server.failure is not None:
            raise server.failure

    def _prepare_reload(
        self,
        reload: SettingsReload,
        server: Server,
        users: Users,
        rules: RuleStore,
        vhosts: VhostStore,
        starter: CompactionStarter,
    ) -> None:
        """Connect a reload with everything that it changes."""
        prepared: list[User] = []

        async def prepare(before: Settings, after: Settings) -> None:
            """Derive the keys of the users, which takes a tenth of a second each."""
            if before.users != after.users:
                iterations = self.settings.server.scram_iterations
                prepared[:] = await asyncio.to_thread(_configured, users.secret, after.users, iterations)

        def apply(before: Settings, after: Settings) -> None:
            configure_logging(after.logging.level, after.logging.format)
            vhosts.reconfigure(after)
            starter.reconfigure(after)
            server.reconfigure(after.connection, after.server, after.engine)
            if before.users != after.users:
                users.configure(prepared, self.settings.server.scram_iterations)
                removed = before.users.keys() - after.users.keys()
                _close_removed(server, frozenset(name for name in removed if users.find(name) is None))
            rules.set_accounts(with_users(Accounts(log_readers=frozenset(after.permissions.log)), users))

        reload.checks.append(lambda found: check_users(found, self.addresses, users, self.anonymous))
        reload.preparations.append(prepare)
        reload.appliers.append(apply)

        def flush() -> None:
            for host in server.hosts.values():
                host.tick_soon()

        reload.flush = flush

    async def _http_listener(
        self,
        server: Server,
        sockets: Sequence[socket.socket],
        terms: HttpTerms,
        tls: TlsContexts | None,
        reload: SettingsReload,
    ) -> "HttpListener":
        """Start the HTTP listener. On other interfaces than loopback it has TLS, and logins for its metrics."""
        from ambermq.tools.broker.http.http_access import HttpAccess  # noqa: PLC0415
        from ambermq.tools.broker.http.http_listener import HttpListener  # noqa: PLC0415

        limits = self.settings.server
        access = HttpAccess(server, limits, terms.token) if terms.is_guarded else None
        if access is not None:
            reload.hooks.append(access.reload_token)
        listener = HttpListener(server, self.directory, limits, tls=tls if terms.is_guarded else None, access=access)
        await listener.start(sockets)
        return listener

    def _open_audit(self) -> AuditWriter:
        """Begin the audit log of the directory, with the start of the broker."""

        def failed(reason: str) -> None:
            structlog.get_logger().error("audit log not written", reason=reason, advice="check the disk")

        audit = AuditWriter(Path(self.directory) / AUDIT_DIRECTORY, self.settings.audit, failed=failed)
        audit.note("broker-started", None, None, version=__version__)
        return audit

    def _end_with_audit(self, server: Server, audit: AuditWriter) -> None:
        """End the broker when the audit log fails, if the configuration requires that log."""
        loop = asyncio.get_running_loop()

        def check() -> None:
            if audit.failure:
                server.fail(LogFailed(f"the audit log is required: {audit.failure}"))
            elif not server.stopped.is_set():
                loop.call_later(_AUDIT_CHECK_SECONDS, check)

        if self.settings.audit.required:
            check()

    def _owner_socket(self) -> list[Listener]:
        """Return the listener of the directory; none if it cannot be bound, and commands use the network then."""
        try:
            return [bind_owner_socket(self.directory)]
        except OSError as error:
            reason = f"{error}: commands with --data connect through the network"
            structlog.get_logger().warning("unix socket not bound", data=self.directory, reason=reason)
            return []

    def _announce(
        self,
        listeners: Sequence[Listener],
        owner_socket: Sequence[Listener],
        vhosts: VhostStore,
        http: Sequence[socket.socket],
    ) -> ListenerAddress:
        """Publish the addresses in the lock files and on standard output; return the first one."""
        first, *others = in_order_of_announcement(listeners)
        vhosts.announce(str(first), owner_socket[0].address.path if owner_socket else "")
        listen = [str(address) for address in others]
        further = {"http": http_url(http, self.http.scheme)} if self.http else {}
        structlog.get_logger().info(
            "serving", url=str(first), listen=listen, data=self.directory, pid=os.getpid(), **further
        )
        words = [f"ready {first} data={self.directory}", *(f"listen={one}" for one in listen)]
        print_line(" ".join([*words, *(f"{name}={value}" for name, value in further.items())]))
        return first


def _answers_during_recovery(
    http: Sequence[socket.socket],
    limits: ServerLimits,
    vhosts: VhostStore,
    terms: HttpTerms | None,
    tls: TlsContexts | None,
) -> AbstractContextManager[None]:
    """Return a context in which the HTTP listener says that the broker recovers."""
    if terms is None:
        return nullcontext()
    # Slow imports, which a broker without the listener does not need.
    from ambermq.tools.broker.http.http_listener import recovery_listener  # noqa: PLC0415

    return recovery_listener(http, limits, lambda: vhosts.scanned, tls if terms.is_guarded else None, terms.token)


def _telemetry(config: TelemetryConfig) -> "Telemetry | None":
    """Return what takes the spans of messages; None without a collector. Raises ToolError without the extra."""
    if not config.endpoint:
        return None
    from ambermq.tools.broker.telemetry.telemetry import open_telemetry  # noqa: PLC0415

    return open_telemetry(config)


def _with_memory_limit(limits: ServerLimits) -> ServerLimits:
    """Return the limits with a budget of memory: the default depends on this process."""
    return limits if limits.memory_bytes_max else replace(limits, memory_bytes_max=default_memory_bytes())


@contextmanager
def _disk_errors(directory: str) -> Iterator[None]:
    """Raise LogFailed for an OSError of the data directory, so that the exit code is 74 wherever the disk fails."""
    try:
        yield
    except BrokenPipeError:
        # Of standard output.
        raise
    except OSError as error:
        raise LogFailed(f"{directory}: {error}") from error


def _stop_signal(reload: Callable[[], None]) -> asyncio.Event:
    """Return the event that SIGTERM and SIGINT set; it exists before the ready line, since a signal may follow.

    SIGHUP calls `reload`.
    """
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)
    stop_signal = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop_signal.set)
    return stop_signal


def _early_reload() -> Event:
    """Return the event that a SIGHUP during recovery sets; without a handler the signal would end the process."""
    event = Event()
    signal.signal(signal.SIGHUP, lambda _number, _frame: event.set())
    return event


async def _first_of(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    loop = asyncio.get_running_loop()
    waits = [loop.create_task(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


def _configured(secret: bytes, users: Mapping[str, str], iterations: int) -> list[User]:
    """Return the users of the configuration; each takes a tenth of a second, without the interpreter's lock."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verifiers = pool.map(
            lambda name: configured_verifier(secret, name, users[name], iterations), users, timeout=None
        )
        return [User(name, verifier, (ADMINISTRATOR,)) for name, verifier in zip(users, verifiers, strict=True)]


def _name_of_uid(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def _close_removed(server: Server, names: frozenset[str]) -> None:
    """Close the connections of users that the configuration has no more."""
    for transport in list(server.sockets.values()) if names else []:
        if transport.peer.identity.username in names:
            why = "the user is not in the configuration any more"
            transport.close(Error(condition=Symbol(ConnectionCondition.CONNECTION_FORCED), description=why))
