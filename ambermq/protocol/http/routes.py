"""The paths of the HTTP listener.

    GET /healthz   200 `ok`: the event loop runs
    GET /readyz    200 or 503, and a word with a reason
    GET /metrics   200, the text format of Prometheus

Rule 1. HEAD has the status and headers of GET. Any other method is 405, and another path 404.
Rule 2. No part of a request is repeated in an answer.
"""

from typing import Final, NamedTuple

from ambermq.protocol.http.readiness import Readiness

__all__ = ["HEALTH_PATH", "METRICS_PATH", "PLAIN", "READY_PATH", "Answer", "health", "ready"]

METRICS_PATH: Final = "/metrics"
READY_PATH: Final = "/readyz"
HEALTH_PATH: Final = "/healthz"
PLAIN: Final = "text/plain; charset=utf-8"
_UNAVAILABLE: Final = 503
_OK: Final = 200


class Answer(NamedTuple):
    """A short answer."""

    status: int
    text: str


def health() -> Answer:
    """Return the answer of `/healthz`."""
    return Answer(_OK, "ok\n")


def ready(found: Readiness) -> Answer:
    """Return the answer of `/readyz`."""
    text = f"{found.word}: {found.reason}" if found.reason else found.word
    return Answer(_OK if found.is_ready else _UNAVAILABLE, f"{text}\n")
