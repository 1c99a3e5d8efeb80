"""The limits of a server: every bound of the gateway and the server is a field here."""

from dataclasses import dataclass
from typing import Final

from ambermq.protocol.amqp10.limits import UINT_MAX, bounded

__all__ = ["ServerLimits", "room_low_bytes"]

_INT_MAX: Final = (1 << 31) - 1
"""The largest bound of a transport's buffer that the event loop accepts."""
_ROOM_LOW_BYTES: Final = 64 << 20
_FILE_SYSTEM_DIVISOR: Final = 16
"""The default of `room_low_bytes` is at most this part of the file system."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The limits of one server; ConnectionLimits has those of each connection."""

    connections_max: int = bounded(10_000, least=1)
    """Open connections of the broker. A further one replaces the oldest that has not authenticated, or is closed."""
    local_connections_reserved: int = 16
    """The last connections, which only peers of this machine get: at most half of all. So administrators connect."""
    address_strangers_max: int = 64
    """Connections of one remote address that have not authenticated. A further one replaces the oldest; 0: no limit."""
    address_accepts_max: int = 200
    """New connections of one remote address in a second. A further one is closed at once; 0: no limit."""
    user_connections_max: int = 0
    """Open connections of one user. A further one is refused; 0: no limit."""
    vhosts_max: int = 64
    """Virtual hosts, including `default`. The same number of directories may be in preparation for others."""
    container_id_bytes_max: int = bounded(1024, least=1)
    """The container id of a connection, in UTF-8. A connection with a longer one is refused."""
    connection_transactions_max: int = 16
    """Open transactions of one connection, also those whose discharge waits for pieces of large messages. A further one
    is refused; 0: none."""
    link_name_bytes_max: int = bounded(1024, least=1)
    """The name of a link, and so of a subscription, in UTF-8. A link with a longer one is refused."""
    unsettled_map_bytes_max: int = bounded(32 << 10, least=64)
    """Bytes of the unsettled map in the answer to an attach that resumes a link. What exceeds them, or the frame of the
    peer, is left out, and the map is marked as incomplete."""
    users_max: int = 10_000
    """Users that the broker stores. A further one is refused. Those of the configuration do not count."""
    scram_iterations: int = bounded(100_000, least=4096, most=10_000_000)
    """The iterations of SCRAM for new users and new passwords. More make guessing slower, and each login, too."""
    plain_without_tls: bool = False
    """Whether SASL PLAIN is offered to remote peers without TLS. It shows the password to the network."""
    login_delay_ms: int = 200
    """The delay of the answer to a failed login. It grows with each failure of a user from one address, to 8 times."""
    login_failures_max: int = 10
    """Failed logins of a user from one remote address, after which its logins fail for `login_lock_s`; of an address 10
    times as many. 0: no limit."""
    login_lock_s: int = bounded(60, least=1)
    """Time of that lock. Failures are forgotten after this time without another one."""
    login_rows_max: int = bounded(10_000, least=1)
    """Addresses, and pairs of address and user, whose failed logins are counted. A further one replaces the oldest."""
    login_checks_max: int = bounded(2, least=1)
    """Passwords that are checked at a time. Each has a thread."""
    login_waiting_max: int = bounded(64, least=1)
    """Passwords that wait for a check. A further one is tried again after `login_delay_ms`."""
    connection_tokens_max: int = bounded(256, least=1)
    """Tokens of one connection that logs in by them, one for each address. A further one is refused."""
    cbs_anonymous: bool = False
    """Whether ANONYMOUS, too, begins a connection that puts tokens, as the Python SDKs of Azure do. Where users have no
    token keys it has no effect."""
    user_keys_max: int = bounded(4, least=1)
    """Token keys of one user. A further one is refused."""
    handshake_bytes_min: int = 100
    """Bytes a second that a peer must send of an incomplete header or frame, after its first 5 s; 0: no limit."""
    handshake_ms: int = 10_000
    """Time for a peer to open its connection. After it the connection is closed."""
    credit_max: int = bounded(1000, least=1, most=UINT_MAX)
    """The credit of a producer. It is renewed at half, as messages become durable."""
    credit_grown_max: int = bounded(8000, least=0, most=UINT_MAX)
    """The greatest credit of a producer that uses all of it before its messages are durable. It doubles each time that
    this happens, and falls back when nothing of the producer is unfinished. Below `credit_max` it never grows."""
    run_bytes_max: int = 1 << 20
    """Messages that one command publishes. A longer run is split."""
    uploads_max: int = bounded(16, least=1)
    """Messages of one connection larger than `chunk_bytes` that may arrive at a time. A further one is rejected."""
    uploads_bytes_max: int = 16 << 30
    """Bytes of all such messages of a virtual host that are not complete; they are on its disk. A message that would
    exceed it is rejected."""
    uploads_unsynced_bytes: int = bounded(1 << 20, least=1)
    """Bytes of such messages of a virtual host that are written and not durable. The next ones wait, so that a sync
    stays short for other messages."""
    upload_ahead_bytes: int = bounded(2 << 20, least=1)
    """Bytes of such messages of one connection that wait for the disk. With more the windows of their sessions are
    closed until half as many wait."""
    upload_waiting_bytes: int = bounded(8 << 20, least=1)
    """The same, as a bound for peers that ignore their windows, and for frames on their way: with more the connection
    is not read from."""
    upload_idle_ms: int = bounded(60_000, least=1)
    """The link of such a message is detached if nothing of it arrives for this time."""
    memory_bytes_max: int = 0
    """Memory for what peers make the broker hold; 0: a quarter of what this process may use."""
    memory_stall_ms: int = bounded(10_000, least=1)
    """While 80 % of that is used and no delivery ends for this time, the connection that holds most is closed."""
    process_memory_high_bytes: int = 0
    """Memory of the process, without pages of files, from which producers get no credit; 0: three quarters of what it
    may use."""
    process_memory_low_bytes: int = 0
    """Memory of the process below which producers continue; 0: nine tenths of `process_memory_high_bytes`."""
    descriptors_free_low: int = 12
    """With fewer free file descriptors producers get no credit, and remote connections are refused. The default is at
    most a sixteenth of the limit of open files."""
    descriptors_free_resume: int = 0
    """Free file descriptors with which that ends; 0: a quarter more than `descriptors_free_low`."""
    output_high_bytes: int = bounded(1 << 20, least=1, most=_INT_MAX)
    """A connection with this much unsent output gets no deliveries until its peer reads."""
    output_max_bytes: int = 16 << 20
    """A connection with this much unsent output is not read from until its peer reads."""
    write_timeout_ms: int = 120_000
    """A peer that reads nothing for this time, although output waits for it, is dropped; 0: never."""
    grant_bytes: int = 4 << 20
    """Bytes of messages that the engine dispatches to one consumer at a time, by an estimate of their size."""
    grant_messages: int = bounded(2000, least=1)
    """Messages that the engine dispatches to one consumer at a time."""
    room_low_bytes: int = _ROOM_LOW_BYTES
    """With less free disk space producers get no credit, and only sessions with management links accept transfers. The
    default is at most a sixteenth of the file system."""
    room_resume_bytes: int = 0
    """Free disk space with which that ends; 0: a quarter more than `room_low_bytes`."""
    goodbye_ms: int = 1000
    """Time for peers to answer the close when the broker stops."""
    shutdown_ms: int = 5000
    """Time for peers to read their last frames when the broker stops."""
    query_results_max: int = 1000
    """Rows of one answer of `$management`. A client asks for the next page."""
    sources_max: int = 1000
    """Links of a virtual host that browse a queue or read `/log`. A further one is refused."""
    source_messages: int = 200
    """Messages that all these links send in one turn. Each iteration of the event loop has one turn."""
    source_bytes: int = 1 << 20
    """Bytes that all these links send in one turn. The message that reaches the bound is the last."""
    browse_ms_max: int = 3_600_000
    """A link that has browsed a queue for this time is detached, since the broker keeps the queue's state for it."""
    past_bytes_max: int = 256 << 20
    """Memory for the states of the past that links browse. A link that would exceed it is refused, except the first."""
    past_jobs_max: int = 1
    """Queries of the past of a virtual host that run at a time. Each has a thread."""
    past_waiting_max: int = 100
    """Queries of the past of a virtual host that wait. A further one is refused."""
    http: str = ""
    """HOST:PORT of the HTTP listener for `/healthz`, `/readyz` and `/metrics`; empty: none."""
    http_connections_max: int = bounded(32, least=1)
    """Open connections of that listener. A further one is closed at once."""
    http_address_connections_max: int = 8
    """Open connections, and logins in progress, of one address on an interface other than loopback. A further one is
    closed at once; 0: no limit."""
    http_address_accepts_max: int = 20
    """New connections of one address in a second, on such an interface. A further one is closed at once; 0: no
    limit."""
    http_header_bytes_max: int = bounded(8192, least=512)
    """The head of an HTTP request. A longer one is refused."""
    http_timeout_ms: int = bounded(10_000, least=1)
    """Time for an HTTP client to send the head of its next request, and to read an answer. After it the connection is
    closed."""
    http_token_file: str = ""
    """File with the bearer token for `/metrics` on an interface other than loopback, mode 0600; empty: none."""
    metrics_queues_max: int = 1000
    """Queues with metrics of their own: the deepest. The others are summed under an empty name."""
    sync_stalled_ms: int = 10_000
    """A sync of the log that lasts longer makes `/readyz` answer 503; 0: never."""


def room_low_bytes(limits: ServerLimits, disk_bytes: int) -> int:
    """Return the free disk space below which producers are held back, for a file system of `disk_bytes`."""
    if limits.room_low_bytes != _ROOM_LOW_BYTES:
        return limits.room_low_bytes
    return min(limits.room_low_bytes, disk_bytes // _FILE_SYSTEM_DIVISOR)
