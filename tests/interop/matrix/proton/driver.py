"""Does what it is asked for with Qpid Proton, and says one line of JSON a behaviour."""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Final

from tests.interop.matrix.proton import defaults, flows, queues, times, topics, transactions

__all__ = ["main"]

_KNOWN: Final[dict[str, Callable[[str, str], str]]] = {
    **queues.BEHAVIOURS,
    **topics.BEHAVIOURS,
    **flows.BEHAVIOURS,
    **transactions.BEHAVIOURS,
    **times.BEHAVIOURS,
    **defaults.BEHAVIOURS,
}


def main(arguments: Sequence[str]) -> None:
    """Run each behaviour against the broker at the URL that comes first."""
    url, *names = arguments
    for name in names:
        try:
            verdict, detail = "passed", _KNOWN[name](url, name)
        except Exception as wrong:  # noqa: BLE001 - whatever it is, the cell has failed
            verdict, detail = "failed", f"{type(wrong).__name__}: {wrong}"
        print(json.dumps({"behaviour": name, "verdict": verdict, "detail": detail}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
