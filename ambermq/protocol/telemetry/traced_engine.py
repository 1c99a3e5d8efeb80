"""The engine of a virtual host whose messages have spans: it calls the tracer, then the engine itself."""

from typing import final

from ambermq.engine.commands import Command, DetachConsumer, Publish, Settle
from ambermq.engine.config import EngineConfig
from ambermq.engine.model.state import State
from ambermq.engine.time_budget import TimeBudget
from ambermq.protocol.gateway.engine_port import EnginePort
from ambermq.protocol.telemetry.message_tracer import MessageTracer

__all__ = ["TracedEngine"]


@final
class TracedEngine:
    """The engine of one gateway, between the links and the engine itself."""

    __slots__ = ("_engine", "_tracer", "hold", "messages", "piece", "replay", "set_credit", "stop_cut_through")

    def __init__(self, engine: EnginePort, tracer: MessageTracer) -> None:
        self._engine = engine
        self._tracer = tracer
        self.hold = engine.hold
        self.messages = engine.messages
        self.piece = engine.piece
        self.replay = engine.replay
        self.set_credit = engine.set_credit
        self.stop_cut_through = engine.stop_cut_through

    @property
    def state(self) -> State:
        """The state of the virtual host."""
        return self._engine.state

    @property
    def config(self) -> EngineConfig:
        """The limits of the engine."""
        return self._engine.config

    @property
    def matching(self) -> TimeBudget:
        """The time for selectors in one turn of the browsing links."""
        return self._engine.matching

    @property
    def durable_end(self) -> int:
        """The offset after everything that is durable."""
        return self._engine.durable_end

    def submit(self, command: Command) -> None:
        """Queue a command for the next tick."""
        if type(command) is DetachConsumer:
            self._tracer.detached(command.consumer)
        self._engine.submit(command)

    def publish(self, command: Publish) -> None:
        """Queue messages for the next tick."""
        self._tracer.published(command)
        self._engine.publish(command)

    def settle(self, command: Settle) -> None:
        """Queue a settlement for the next tick."""
        self._tracer.settled(command)
        self._engine.settle(command)
