"""Writing the golden files of the public surface, on purpose: `python -m tests.surface --write`."""

import sys

from tests.surface.collect import CATEGORIES
from tests.surface.golden import write


def _main() -> int:
    if sys.argv[1:] != ["--write"]:
        print("usage: python -m tests.surface --write", file=sys.stderr)
        return 2
    for category, collect in CATEGORIES.items():
        write(category, collect())
    return 0


sys.exit(_main())
