"""The errors of the engine. A refusal is an answer to a peer; any other error is a defect of AmberMQ."""

__all__ = ["EngineError", "PatternError", "Refused", "SelectorError", "counted"]


def counted(count: int, noun: str) -> str:
    """Return a number and its noun for a description: "1 message", "2 messages"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


class EngineError(Exception):
    """The base of the engine's errors."""


class Refused(EngineError):
    """The refusal of a command; nothing has changed.

    `condition` is the AMQP error condition for the peer ("amqp:not-found"); `description` explains it to a person.
    """

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(f"{condition}: {description}")
        self.condition = condition
        self.description = description


class PatternError(EngineError):
    """An invalid pattern or separator; `message` has the position and the reason."""

    def __init__(self, text: str, reason: str, *, position: int) -> None:
        super().__init__(f"bad pattern {text[:80]!r} at character {position}: {reason}")
        self.message = str(self)
        self.position = position
        """The index of the first invalid character, from 0."""


class SelectorError(EngineError):
    """A selector that cannot be compiled; `message` has the position, the token and the reason."""

    def __init__(self, reason: str, *, position: int, token: str) -> None:
        found = f"{token[:40]!r}" if token else "the end"
        super().__init__(f"bad selector at character {position}, {found}: {reason}")
        self.message = str(self)
        self.position = position
        """The index of the first invalid character, from 0."""
        self.token = token
        """The text at this position, "" at the end."""
