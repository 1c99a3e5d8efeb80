"""The limits of the spans of messages, and where they go."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from ambermq.protocol.amqp10.limits import bounded
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["TelemetryConfig", "check_telemetry"]


@dataclass(frozen=True, slots=True)
class TelemetryConfig:
    """The table `[telemetry]` of the configuration."""

    endpoint: str = ""
    """The URL of the collector, with its path: spans go there by OTLP over HTTP. Empty: no spans."""
    sample_percent: int = bounded(100, most=100)
    """Of 100 traces with the sampled flag so many have spans."""
    queue_max: int = bounded(2048, least=1)
    """Spans that wait for the collector. Further ones are dropped and counted."""
    messages_max: int = bounded(65_536, least=1)
    """The messages of a virtual host whose spans are under way. Further ones are counted as dropped spans."""
    timeout_ms: int = bounded(5_000, least=1, most=60_000)
    """The time for one request to the collector, and for the last spans when the broker stops."""
    service_name: str = "ambermq"
    """The attribute service.name of the spans."""

    @property
    def collector(self) -> str:
        """The host of the endpoint: the rest may have a password."""
        return urlsplit(self.endpoint).hostname or ""


def check_telemetry(config: TelemetryConfig, where: Callable[[str], str]) -> None:
    """Raise ToolError for a wrong value; `where` returns the place of a key."""
    if config.endpoint and not _is_url(config.endpoint):
        # What stands before the host, or in the query, may be a secret.
        found = config.endpoint.rpartition("@")[2].partition("?")[0]
        raise _wrong("endpoint", where, "a URL such as http://127.0.0.1:4318/v1/traces", found)
    if not config.service_name:
        raise _wrong("service_name", where, "a name", "none")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _wrong(name: str, where: Callable[[str], str], expected: str, found: str) -> ToolError:
    return ToolError(f"{name} is invalid", where=where(name), expected=expected, found=found, code=ExitCode.USAGE)
