"""The broker of a checkout, with a counter of Python calls in the thread of its event loop.

    python -P call_probe.py CLI-MODULE COUNTS-FILE MESSAGES serve ...

A message begins with the read of its transfer, and ends with the log write of its settlement: the last write before the
next message. The calls after that write belong to its sync. The counter counts the `call` events of `sys.setprofile`,
which are calls of Python functions. After the given number of messages it writes the counts as JSON, and stops.
"""

import importlib
import json
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

__all__ = ["CallCounter"]

_READ: Final = "buffer_updated"
_WRITE: Final = "Log.write"
_TICK: Final = "DurableLoop.step"
_PUBLISH: Final = ("ProducerLink.publish", "Producing.publish")
"""The read in which this is called begins the next message; the second name is that of old checkouts."""
_WARM: Final = 20
"""The first messages, which are not counted: links attach, caches fill."""


class CallCounter:
    """The counter of calls for each message."""

    def __init__(self, messages: int, file: Path) -> None:
        """Count the calls of `messages` messages and write them to `file`."""
        self._left = messages + _WARM
        self._messages = messages
        self._file = file
        self._read_start = 0
        self._codes: list[CodeType] = []
        self._written = 0
        self._counts: list[dict[str, int]] = []
        self._functions: Counter[str] = Counter()

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Count an event of `sys.setprofile`."""
        code = frame.f_code
        if event == "call":
            if code.co_name == _READ:
                self._read_start = len(self._codes)
            elif code.co_qualname in _PUBLISH:
                self._end_message()
            self._codes.append(code)
        elif event == "return" and code.co_qualname == _WRITE:
            self._written = len(self._codes)

    def _end_message(self) -> None:
        self._left -= 1
        following = self._codes[self._read_start :]
        if self._left < self._messages:
            self._counts.append(_figures(self._codes[: self._written]) | {"with_sync": self._read_start})
            names = [f"{Path(code.co_filename).name}:{code.co_qualname}" for code in self._codes[: self._written]]
            self._functions.update(names)
        self._codes, self._written, self._read_start = following, 0, 0
        if not self._left:
            sys.setprofile(None)
            self._file.write_text(json.dumps({"messages": self._counts, "functions": self._functions}))


def _figures(codes: list[CodeType]) -> dict[str, int]:
    files = [code.co_filename for code in codes]
    return {
        "calls": len(codes),
        "files": len(set(files)),
        "file_changes": sum(one != other for one, other in pairwise(files)),
        "ticks": sum(code.co_qualname == _TICK for code in codes),
    }


def _main() -> None:
    _, module, file, messages, *arguments = sys.argv
    main = importlib.import_module(module).main
    sys.argv = ["ambermq", *arguments]
    sys.setprofile(CallCounter(int(messages), Path(file)))
    main(prog_name="ambermq")


if __name__ == "__main__":
    _main()
