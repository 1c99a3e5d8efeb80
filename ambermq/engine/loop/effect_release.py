"""The release of effects: a delivery gets its message bodies here, immediately before it leaves.

Rule 1. A delivery whose message must be read from the disk waits in a queue of its consumer, and so do later ones.
Rule 2. A damaged message is not delivered. It is reported, leaves its queue, and uses no credit.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import rshift
from typing import Final, final

from ambermq.engine.commands import ReportDamage
from ambermq.engine.dispatch.cut_through import ALL_CREDIT
from ambermq.engine.dispatch.demand import Demand
from ambermq.engine.dispatch.large_message import assemble
from ambermq.engine.effects import CutThroughBegun, CutThroughEnded, Deliver, Drained, Effect
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.log.buffer import Buffer
from ambermq.log.read.body_store import DAMAGED, BodyStore

__all__ = ["EffectRelease"]

_BEHIND: Final = (Drained, CutThroughBegun, CutThroughEnded)
"""The effects that overtake no delivery of their consumer."""
_Behind = Drained | CutThroughBegun | CutThroughEnded


@final
class EffectRelease:
    """The release of effects that no longer wait for the log."""

    __slots__ = ("_bodies", "_demand", "_report", "queues")

    def __init__(self, bodies: BodyStore, demand: Demand, report: Callable[[ReportDamage], None]) -> None:
        """Read messages from `bodies`; call `report` for damaged ones."""
        self._bodies = bodies
        self._demand = demand
        self._report = report
        self.queues: dict[int, deque[Deliver | _Behind]] = {}
        """The effects that wait for a read, by consumer."""

    def forget(self, consumer: int) -> None:
        """Drop the effects of a detached consumer."""
        self.queues.pop(consumer, None)

    def release(self, effects: Iterable[Effect]) -> list[Effect]:
        """Return those of `effects` that leave now, deliveries with their bodies; the others are queued."""
        released: list[Effect] = []
        queues = self.queues
        for effect in effects:
            if type(effect) is Deliver:
                if effect.cancelled:
                    continue
                queue = queues.get(effect.consumer)
                if queue is not None:
                    queue.append(effect)
                elif self._set_bodies(effect):
                    released.append(effect)
                else:
                    queues[effect.consumer] = deque((effect,))
            elif isinstance(effect, _BEHIND) and effect.consumer in queues:
                queues[effect.consumer].append(effect)
            else:
                if type(effect) is CutThroughBegun or type(effect) is CutThroughEnded:
                    self._note_released(effect)
                released.append(effect)
        return released

    def release_read(self) -> list[Effect]:
        """Return the effects whose reads have ended."""
        released: list[Effect] = []
        for consumer, queue in list(self.queues.items()):
            while queue:
                effect = queue[0]
                if type(effect) is not Deliver:
                    self._note_released(effect)
                    released.append(effect)
                elif not effect.cancelled:
                    if not self._set_bodies(effect):
                        break
                    released.append(effect)
                queue.popleft()
            if not queue:
                del self.queues[consumer]
        return released

    def _note_released(self, effect: _Behind) -> None:
        """Note that the link of a reserved consumer knows of the begin or the end of its delivery.

        From the begin on the link holds back the credit. After the end it knows whether a frame was sent.
        """
        want = self._demand.wants.get(effect.consumer)
        if want is None:
            return
        if type(effect) is CutThroughBegun:
            want.held_count -= ALL_CREDIT
        elif type(effect) is CutThroughEnded and effect in want.held:
            want.held.remove(effect)

    def _set_bodies(self, effect: Deliver) -> bool:
        """Set the bodies of a delivery; return False if one must be read first."""
        bodies: Sequence[Buffer | StoredMessage] | None
        if effect.entries is None:
            offsets = list(map(rshift, effect.words, repeat(16)))
            bodies = self._bodies.get_run(offsets)
            if bodies and type(bodies[0]) is memoryview:
                # Large bodies are rarely read twice, and each occupies a read buffer.
                self._bodies.forget(offsets)
        else:
            bodies = assemble(self._bodies, effect.words, effect.entries)
        if bodies is None:
            return False
        want = self._demand.wants.get(effect.consumer)
        if want is not None:
            want.held.remove(effect)
            want.held_count -= len(effect.words)
        effect.bodies = bodies
        for body in bodies:
            if body is DAMAGED:
                effect.bodies = self._remove_damaged(effect, bodies)
                break
        return True

    def _remove_damaged(
        self, effect: Deliver, bodies: Sequence[Buffer | StoredMessage]
    ) -> Sequence[Buffer | StoredMessage]:
        whole = [body is not DAMAGED for body in bodies]
        want = self._demand.wants.get(effect.consumer)
        if want is not None:
            # Damaged messages do not reach the gateway, so they use no credit.
            want.take_back(whole.count(False))
            self._demand.touch(want.queue)
        for word, is_whole in zip(effect.words, whole, strict=True):
            if not is_whole:
                self._report(ReportDamage(effect.queue, word))
        effect.words = tuple([word for word, is_whole in zip(effect.words, whole, strict=True) if is_whole])
        if effect.entries is not None:
            effect.entries = [entry for entry, is_whole in zip(effect.entries, whole, strict=True) if is_whole]
        return [body for body in bodies if body is not DAMAGED]
