"""What can go wrong in the engine: a refusal is an answer to a peer, anything else is our own mistake."""

__all__ = ["EngineError", "Refused"]


class EngineError(Exception):
    """The base of the engine's errors."""


class Refused(EngineError):
    """A command that cannot be done; nothing has changed.

    `condition` is the AMQP error condition for the peer ("amqp:not-found"), `description` says it to a person.
    """

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(f"{condition}: {description}")
        self.condition = condition
        self.description = description
