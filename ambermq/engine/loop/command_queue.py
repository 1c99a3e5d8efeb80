"""What was gathered since the last tick, and what of it the next one decides.

Rule 1. What is left of the last tick goes first: nothing is decided between the parts of a command.
Rule 2. Settlements that nobody waits for wait beside publishing alone for others like them, a run a consumer,
        `lazy_write_ms` at most, or until they are as many as a tick takes. They overtake nothing, for a queue may end
        with its last message; and what somebody waits for is decided behind them.
Rule 3. One durable message may wait for one other, while nothing else is gathered (company.py).
"""

from collections import deque
from typing import Final, final

from ambermq.engine.commands import Command, Publish, Settle
from ambermq.engine.config import EngineConfig
from ambermq.engine.fold.wide_fanout import WideFanout
from ambermq.engine.loop.coalescing_delay import FOREVER_US, Company
from ambermq.engine.model.outcome import ACCEPTED

__all__ = ["CommandQueue"]

_JOINED_WORD_BYTES_MAX: Final = 16_384


@final
class CommandQueue:
    """Commands that wait for the next tick; plain columns, for they are asked with each read."""

    __slots__ = (
        *("_commands", "_config", "_count_max", "_joined_bytes_max", "_settles", "_size_max"),
        *("company", "count", "is_due", "is_urgent", "publish_count", "rest", "settle_by_us", "size"),
    )

    def __init__(self, config: EngineConfig, *, batch_bytes_max: int) -> None:
        """Begin empty; a run of settlements takes a quarter of a batch at most."""
        self._config = config
        self._count_max, self._size_max = config.tick_messages_max, config.tick_bytes_max
        self._joined_bytes_max = min(_JOINED_WORD_BYTES_MAX, batch_bytes_max // 4)
        self._commands: list[Command] = []
        self._settles: dict[int, Settle] = {}
        self.company = Company(config.gather_us)
        self.rest: deque[Command | WideFanout] = deque()
        """What the last tick had no changes left for."""
        self.is_due = False
        """There is something that may not wait."""
        self.is_urgent = False
        """Somebody waits for something else than publishing, or settlements are as many as a tick takes."""
        self.publish_count = 0
        self.count = 0
        """Messages and settlements."""
        self.size = 0
        """Bytes of messages."""
        self.settle_by_us = FOREVER_US
        """When settlements wait no longer."""

    def __bool__(self) -> bool:
        """Tell whether there is anything."""
        return bool(self._commands or self._settles or self.rest)

    @property
    def is_full(self) -> bool:
        """Whether it is as much as a tick takes."""
        return self.count >= self._count_max or self.size >= self._size_max

    def add(self, command: Command) -> None:
        """Gather what somebody waits for."""
        self.hurry()
        self._commands.append(command)

    def hurry(self) -> None:
        """Let nothing wait any more: what does goes before what comes from now on."""
        self.is_urgent = self.is_due = True
        if self._settles:
            self._commands += self._settles.values()
            self._settles = {}

    def publish(self, command: Publish) -> None:
        """Gather messages; they join those before them where both are parts of one run."""
        self.is_due = True
        self.count += len(command.bodies)
        self.size += command.size
        self.publish_count += 1
        if self.company.count:
            self.company.meet(command.link)
        commands = self._commands
        if commands:
            last = commands[-1]
            if type(last) is Publish and last.join(command, bytes_max=self._config.chunk_bytes):
                return
        commands.append(command)

    def settle(self, command: Settle) -> None:
        """Gather a settlement; it joins what the same consumer said before, where both are alike."""
        self.count += 1
        if command.outcome is not ACCEPTED or command.reply is not None or self.count >= self._count_max:
            self.hurry()
        if self.is_urgent:
            last = self._commands[-1] if self._commands else None
            if type(last) is not Settle or not last.join(command, bytes_max=self._joined_bytes_max):
                self._commands.append(command)
            return
        # Nobody waits for it, and nothing becomes available by it.
        run = self._settles.get(command.consumer)
        if run is None or not run.take(command.words, bytes_max=self._joined_bytes_max):
            if run is not None:
                self._commands.append(run)
            self._settles[command.consumer] = command

    def put_off(self, now_us: int) -> None:
        """Let what there is wait for the next tick, but no longer than lazy_write_ms."""
        if self.settle_by_us == FOREVER_US:
            self.settle_by_us = now_us + self._config.lazy_write_ms * 1000

    def may_wait(self, now_us: int) -> bool:
        """Let the one message that there is wait for company: until `company.by_us`, or until it has it.

        Returns False where it is not alone, or nobody is to be expected.
        """
        if self.is_urgent or self.publish_count != 1:
            return False
        last = self._commands[-1]
        if type(last) is not Publish or not last.durable or not self.company.may_wait(now_us, last.link):
            return False
        self.is_due = False
        if self._settles:
            # What has come with it waits no longer for that.
            self.put_off(now_us)
        return True

    def take(self, now_us: int) -> deque[Command | WideFanout]:
        """Take what this tick decides, and begin anew."""
        ahead = self.rest
        ahead += self._commands
        self.rest, self._commands = deque(), []
        if self._settles and self.publish_count and now_us < self.settle_by_us:
            self.put_off(now_us)
        else:
            ahead += self._settles.values()
            self._settles = {}
            self.settle_by_us = FOREVER_US
        if self.publish_count:
            self.company.decided(now_us, self.publish_count)
        self.count = self.publish_count = self.size = 0
        self.is_due = self.is_urgent = False
        return ahead

    def give_back(self, rest: deque[Command | WideFanout]) -> None:
        """Let what a tick had no changes left for go before what comes from now on."""
        self.rest = rest
        self.hurry()
