"""What was gathered since the last tick, and what of it the next one decides.

Rule 1. What is left of the last tick goes first: nothing is decided between the parts of a command.
Rule 2. Settlements that nobody waits for wait beside publishing alone for others like them, a run a consumer,
        `lazy_write_ms` at most, or until they are as many as a tick takes. They overtake nothing, for a queue may end
        with its last message; and what somebody waits for is decided behind them.
Rule 3. What is reported of it to the schedule decides when it is taken (schedule.py).
"""

from collections import deque
from typing import Final, final

from ambermq.engine.commands import Command, Publish, Settle
from ambermq.engine.config import EngineConfig
from ambermq.engine.fold.wide_fanout import WideFanout
from ambermq.engine.loop.schedule import Schedule
from ambermq.engine.model.outcome import ACCEPTED

__all__ = ["CommandQueue"]

_JOINED_WORD_BYTES_MAX: Final = 16_384


@final
class CommandQueue:
    """Commands that wait for the next tick; added to with each read."""

    __slots__ = (
        *("_chunk_bytes", "_commands", "_count_max", "_has_messages", "_is_ordered", "_joined_bytes_max"),
        *("_schedule", "_settles", "rest"),
    )

    def __init__(self, config: EngineConfig, schedule: Schedule, *, batch_bytes_max: int) -> None:
        """Begin empty; a run of settlements takes a quarter of a batch at most."""
        self._schedule = schedule
        self._chunk_bytes, self._count_max = config.chunk_bytes, config.tick_messages_max
        self._joined_bytes_max = min(_JOINED_WORD_BYTES_MAX, batch_bytes_max // 4)
        self._commands: list[Command] = []
        self._settles: dict[int, Settle] = {}
        self._has_messages = False
        self._is_ordered = False
        """A command was gathered that settlements may not wait beside: they stand behind it."""
        self.rest: deque[Command | WideFanout] = deque()
        """What the last tick had no changes left for."""

    def __bool__(self) -> bool:
        """Tell whether there is anything."""
        return bool(self._commands or self._settles or self.rest)

    def add(self, command: Command) -> None:
        """Gather a command that a peer waits for."""
        self.hurry()
        self._commands.append(command)

    def hurry(self) -> None:
        """Make every gathered command due now, ahead of later ones."""
        self._schedule.has_urgent = self._is_ordered = True
        if self._settles:
            self._commands += self._settles.values()
            self._settles = {}

    def publish(self, command: Publish) -> None:
        """Gather messages; they join those before them where both are parts of one run."""
        schedule = self._schedule
        schedule.has_urgent = self._has_messages = True
        schedule.count += len(command.bodies)
        schedule.size += command.size
        commands = self._commands
        if commands:
            last = commands[-1]
            if type(last) is Publish and last.join(command, bytes_max=self._chunk_bytes):
                return
        commands.append(command)

    def settle(self, command: Settle) -> None:
        """Gather a settlement; it joins what the same consumer said before, where both are alike."""
        schedule = self._schedule
        schedule.count += 1
        if command.outcome is not ACCEPTED or command.reply is not None or schedule.count >= self._count_max:
            self.hurry()
        if self._is_ordered:
            last = self._commands[-1] if self._commands else None
            if type(last) is not Settle or not last.join(command, bytes_max=self._joined_bytes_max):
                self._commands.append(command)
            return
        # No peer waits for it, and nothing becomes available by it.
        schedule.has_lazy = True
        run = self._settles.get(command.consumer)
        if run is None or not run.take(command.words, bytes_max=self._joined_bytes_max):
            if run is not None:
                self._commands.append(run)
            self._settles[command.consumer] = command

    def take(self, now_us: int) -> deque[Command | WideFanout]:
        """Take what this tick decides, and begin anew."""
        schedule, ahead = self._schedule, self.rest
        ahead += self._commands
        self.rest, self._commands = deque(), []
        waits_on = bool(self._settles) and self._has_messages and now_us < schedule.write_by_us
        if not waits_on:
            ahead += self._settles.values()
            self._settles = {}
        schedule.count = schedule.size = 0
        schedule.has_urgent, schedule.has_lazy = False, waits_on
        self._has_messages = self._is_ordered = False
        return ahead

    def give_back(self, rest: deque[Command | WideFanout]) -> None:
        """Put what a tick had no changes left for ahead of later commands."""
        self.rest = rest
        self.hurry()
