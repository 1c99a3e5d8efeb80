"""The queues that a person may have meant by an address that does not exist.

Rule. Only the queues that the broker lists for the user are named, and at most `_NAMES_MAX` of them are compared.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final
from urllib.parse import unquote

from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import QueueManagement
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.near_names import near_advice

__all__ = ["near_queues"]

_NAMES_MAX: Final = 10_000
_QUEUES: Final = "/queues/"


@contextmanager
def near_queues(client: LinkClient, address: str) -> Iterator[None]:
    """Add the nearest existing queues to an error in the block that says that an address does not exist."""
    try:
        yield
    except ToolError as error:
        advice = _advice(client, address) if error.exit_code == ExitCode.NOT_FOUND else ""
        if not advice:
            raise
        raise ToolError(error.message, advice=advice, code=ExitCode.NOT_FOUND) from error


def _advice(client: LinkClient, address: str) -> str:
    name = unquote(address.removeprefix(_QUEUES)) if address.startswith(_QUEUES) else address
    if name.startswith(("/", "$")):
        return ""
    try:
        rows = islice(QueueManagement(client).queues(), _NAMES_MAX)
        known = [text for row in rows if not (text := str(row["name"])).startswith("$")]
        # A queue that exists is not the one that the error is about: the request names another one too.
        return "" if name in known else near_advice(name, known)
    except ToolError:
        return ""  # A broker of another kind, or a user that may not ask: the first error is the one that counts.
