"""`python -m bench.costs.levels`: what priorities and groups cost a queue whose messages are all of one kind.

Two brokers of this checkout run in turn, as in `bench.paired`. The queues of one have both settings, as new queues do,
and those of the other have none of them. Loads: messages without a priority, and those of Qpid JMS, which have one.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from bench.costs.two_brokers import cost_of, options_of, report
from bench.paired import Side, compare

__all__ = ["main"]

_COST_MAX: Final = 0.03
_LOADS: Final = ("one-100", "jms-100")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each load and print the figures; return 0, or 1 if a broker or a load failed."""
    parser = options_of("python -m bench.costs.levels", __doc__, turns=60, window=0.5, warm=3.0)
    options = parser.parse_args(arguments)
    sides = [_side("without", flag="false"), _side("with", flag="true")]
    return report(
        lambda load: cost_of(compare, sides, load, options, cost_max=_COST_MAX),
        options.load or _LOADS,
        cost_max=_COST_MAX,
        output=options.output,
    )


def _side(word: str, *, flag: str) -> Side:
    config = f'[[templates]]\nname = "measured"\npattern = "#"\npriorities = {flag}\ngroups = {flag}\n'
    return replace(Side.parse("."), word=word, config=config)


if __name__ == "__main__":
    sys.exit(main())
