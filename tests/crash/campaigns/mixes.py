"""A campaign without processes: many seeds of the model of mixed queue settings, with kills and power cuts.

The engine runs on a simulated disk, so a seed repeats a run exactly: `Mix(seed).run(STEPS)`. Every second mix has large
messages, a muxer and suspended links too: `WideMix(seed).run(STEPS)`.
"""

import random
import traceback
from collections import Counter
from typing import Final

from tests.model.mix import Mix
from tests.model.wide_mix import WideMix

__all__ = ["STEPS", "run_mixes"]

STEPS: Final = 100
"""The ticks of one seed."""
_FAULTS_MAX: Final = 5


def run_mixes(*, seed: int, mixes: int) -> tuple[str, ...]:
    """Run so many mixes and return the faults, each with the seed of its mix; print what they reached."""
    chance, faults, ends, delivered = random.Random(seed), list[str](), Counter[str](), 0
    for number in range(mixes):
        one, kind = chance.randrange(1 << 32), (Mix, WideMix)[number % 2]
        try:
            mix = kind(one)
            mix.run(STEPS)
            mix.end()
        except Exception as error:  # noqa: BLE001 - the trace is printed
            traceback.print_exc(limit=-4)
            faults.append(f"law: {kind.__name__}({one}).run({STEPS}): {error!r}")
            if len(faults) >= _FAULTS_MAX:
                break
            continue
        ends += mix.ledger.ends
        delivered += mix.delivered
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(ends.items()))
    print(f"{mixes} mixes of settings, {delivered} deliveries; messages left their queues: {reasons}")
    return tuple(faults)
