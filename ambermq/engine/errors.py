"""What can go wrong in the engine: a refusal is an answer to a peer, anything else is our own mistake."""

__all__ = ["EngineError", "PatternError", "Refused", "SelectorError"]


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


class PatternError(EngineError):
    """A pattern or a separator that cannot be one; `message` says where it goes wrong, and why."""

    def __init__(self, text: str, reason: str, *, position: int) -> None:
        super().__init__(f"bad pattern {text[:80]!r} at character {position}: {reason}")
        self.message = str(self)
        self.position = position
        """The character where it goes wrong, from 0."""


class SelectorError(EngineError):
    """A selector that cannot be compiled; `message` says where it goes wrong, at what, and why."""

    def __init__(self, reason: str, *, position: int, token: str) -> None:
        found = f"{token[:40]!r}" if token else "the end"
        super().__init__(f"bad selector at character {position}, {found}: {reason}")
        self.message = str(self)
        self.position = position
        """The character where it goes wrong, from 0."""
        self.token = token
        """The text that stands there, "" at the end."""
