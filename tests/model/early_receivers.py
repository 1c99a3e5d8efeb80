"""The receivers of a mix that get large messages while these arrive: what their links do, and the laws of it.

Rule 1. A delivery begins when a piece is durable, and its receiver gets nothing else until it ends.
Rule 2. A delivery that ends with a word is the message that was published, byte for byte. Any other is aborted, and its
        receiver holds nothing of it.
Rule 3. Each delivery ends: with its message, with its receiver, or since its link has given it up.
"""

import random
from collections import Counter
from collections.abc import Mapping

from ambermq.engine.commands import Settle
from ambermq.engine.effects import CutThroughBegun, CutThroughEnded
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import RELEASED
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.protocol.gateway.large.arriving_message import ArrivingMessage
from tests.engine.rig import read_large

__all__ = ["EarlyReceivers"]


class EarlyReceivers:
    """The deliveries that have begun, and how many have ended in each way."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.messages: dict[int, ArrivingMessage] = {}
        """The messages that arrive, by consumer."""
        self.ends: Counter[str] = Counter()

    def begin(self, loop: DurableLoop, effect: CutThroughBegun) -> None:
        """Begin a delivery; some links send its first frame at once."""
        cut_through = effect.cut_through
        assert effect.consumer not in self.messages, "two deliveries of a link mix"
        assert cut_through.upload.id < loop.durable_end, "a delivery begins before its first piece is durable"
        if not cut_through.is_ended:
            cut_through.is_sent = self._rng.random() < 0.5
            self.messages[effect.consumer] = ArrivingMessage(cut_through)
            loop.set_credit(effect.consumer, 0)

    def end(
        self, loop: DurableLoop, effect: CutThroughEnded, bodies: Mapping[int, bytes], places: Mapping[int, int]
    ) -> None:
        """Complete a delivery, or abort it.

        `bodies` are the published messages by their offsets, `places` the consumers that hold those of its queue.
        """
        message = self.messages.get(effect.consumer)
        if message is None or message.cut_through is not effect.cut_through:
            if effect.word and not effect.cut_through.settled:
                loop.submit(Settle(effect.consumer, pack_words((effect.word,)), RELEASED))
            return
        del self.messages[effect.consumer]
        if not effect.word:
            self.ends["aborted"] += 1
            return
        self.ends["completed"] += 1
        message.complete(effect.word)
        entry = effect.word >> 16
        if entry in bodies:
            # Before a power cut the fold is behind.
            assert read_large(loop, message) == bodies[entry], "a receiver has another message"
            is_held = effect.consumer in loop.demand.wants and not effect.cut_through.settled
            assert not is_held or places[entry] == effect.consumer, "a receiver does not hold its message"

    def give_up(self, loop: DurableLoop) -> None:
        """End a delivery as its link does: its receiver takes credit back. Another one may begin."""
        consumers = sorted(one for one, message in self.messages.items() if not message.cut_through.is_sent)
        if consumers:
            cut_through = self.messages.pop(self._rng.choice(consumers)).cut_through
            cut_through.upload.may_cut_through = self._rng.random() < 0.7
            loop.stop_cut_through(cut_through)
            self.ends["given up"] += 1

    def check(self, loop: DurableLoop) -> None:
        """Check what holds when nothing is under way."""
        for consumer, message in list(self.messages.items()):
            if consumer not in loop.demand.wants:
                del self.messages[consumer]
            else:
                cut_through = message.cut_through
                known = loop.demand.cut_throughs.get(cut_through.queue)
                known = known if cut_through.upload.id in loop.state.uploads else None
                assert known is cut_through, "a delivery neither goes on nor ends"
