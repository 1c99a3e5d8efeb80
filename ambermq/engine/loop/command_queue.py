"""The commands since the last tick, and the choice of those that the next tick decides.

Rule 1. The rest of the last tick goes first: no command is decided between the parts of another one.
Rule 2. Settlements without a reply coalesce, one run for each consumer. Their delay lasts at most `lazy_write_ms`, or
        until they are as many as a tick takes; publishing alone does not end it. They overtake no other command, since
        a queue may end with its last message. Any other command is decided after them.
Rule 3. The schedule decides when the commands are taken, by what this queue reports to it (schedule.py).
"""

from collections import deque
from typing import Final, final

from ambermq.engine.commands import Command, Publish, Settle
from ambermq.engine.config import EngineConfig
from ambermq.engine.entries.entry_word import unpack_words
from ambermq.engine.entries.outcome import ACCEPTED
from ambermq.engine.fold.wide_fanout import WideFanout
from ambermq.engine.loop.schedule import Schedule

__all__ = ["CommandQueue"]

_JOINED_WORD_BYTES_MAX: Final = 16_384


@final
class CommandQueue:
    """The commands that wait for the next tick."""

    __slots__ = (
        *("_chunk_bytes", "_commands", "_count_max", "_has_messages", "_is_ordered", "_joined_bytes_max"),
        *("_schedule", "_settles", "rest"),
    )

    def __init__(self, config: EngineConfig, schedule: Schedule, *, batch_bytes_max: int) -> None:
        """Start empty. A run of settlements takes at most a quarter of a batch."""
        self._schedule = schedule
        self._chunk_bytes, self._count_max = config.chunk_bytes, config.tick_messages_max
        self._joined_bytes_max = min(_JOINED_WORD_BYTES_MAX, batch_bytes_max // 4)
        self._commands: list[Command] = []
        self._settles: dict[int, Settle] = {}
        self._has_messages = False
        self._is_ordered = False
        """Whether a command was added that settlements must not overtake: they are queued after it."""
        self.rest: deque[Command | WideFanout] = deque()
        """The rest of the last tick, which had used up its changes."""

    def __bool__(self) -> bool:
        """Return whether a command waits."""
        return bool(self._commands or self._settles or self.rest)

    def add(self, command: Command) -> None:
        """Add a command whose answer a peer waits for."""
        self.make_due()
        self._commands.append(command)

    def make_due(self) -> None:
        """Make every queued command due now, ahead of later ones."""
        schedule = self._schedule
        schedule.has_urgent = schedule.is_prompt = self._is_ordered = True
        if self._settles:
            self._commands += self._settles.values()
            self._settles = {}

    def publish(self, command: Publish) -> None:
        """Add messages; they join the last command if both are parts of one run."""
        schedule = self._schedule
        schedule.has_urgent = self._has_messages = True
        if not command.durable:
            schedule.is_prompt = True
        schedule.count += len(command.bodies)
        schedule.size += command.size
        commands = self._commands
        if commands:
            last = commands[-1]
            if type(last) is Publish and last.join(command, bytes_max=self._chunk_bytes):
                return
        commands.append(command)

    def settle(self, command: Settle) -> None:
        """Add a settlement; it joins the last one of its consumer if both are alike."""
        schedule = self._schedule
        schedule.count += 1
        if command.outcome is not ACCEPTED or command.reply is not None or schedule.count >= self._count_max:
            self.make_due()
        if self._is_ordered:
            last = self._commands[-1] if self._commands else None
            if type(last) is not Settle or not last.join(command, bytes_max=self._joined_bytes_max):
                self._commands.append(command)
            return
        # No peer waits for it, and it makes no message available.
        schedule.has_lazy = True
        run = self._settles.get(command.consumer)
        if run is None or not run.take(command.words, bytes_max=self._joined_bytes_max):
            if run is not None:
                self._commands.append(run)
            self._settles[command.consumer] = command

    def take(self, now_us: int) -> deque[Command | WideFanout]:
        """Return the commands of this tick, and start empty again."""
        schedule, ahead = self._schedule, self.rest
        ahead += self._commands
        self.rest, self._commands = deque(), []
        is_delayed = bool(self._settles) and self._has_messages and now_us < schedule.write_by_us
        if not is_delayed:
            ahead += self._settles.values()
            self._settles = {}
        schedule.count = schedule.size = 0
        schedule.has_urgent = schedule.is_prompt = False
        schedule.has_lazy = is_delayed
        self._has_messages = self._is_ordered = False
        return ahead

    def settling(self) -> set[tuple[int, int]]:
        """Return the consumers and words of the settlements that wait."""
        waiting = (*self.rest, *self._commands, *self._settles.values())
        settles = [one for one in waiting if type(one) is Settle]
        return {(one.consumer, word) for one in settles for word in unpack_words(one.words)}

    def give_back(self, rest: deque[Command | WideFanout]) -> None:
        """Put the rest of a tick ahead of later commands."""
        self.rest = rest
        self.make_due()
