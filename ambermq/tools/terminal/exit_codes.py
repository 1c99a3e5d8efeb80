"""How a command of `ambermq` ends: the exit codes, which scripts and service managers may rely on."""

from enum import IntEnum

__all__ = ["ExitCode"]


class ExitCode(IntEnum):
    """One number a kind of end; `ambermq --help` shows the same table."""

    OK = 0
    """Done as asked."""
    FAILED = 1
    """A refusal or a failure, told in one message; also: the directory is locked."""
    USAGE = 2
    """The command line or the configuration is wrong; nothing was tried."""
    TIMEOUT = 3
    """The time is over: nothing, or not all that was asked for, was received."""
    CANNOT_CONNECT = 4
    """No broker answers where one was named, or the connection broke."""
    DAMAGED = 5
    """Damage was found in a log; the message names file and position."""
    NOT_FOUND = 6
    """The queue, file or directory does not exist."""
    NOT_INSTALLED = 7
    """Java, or a package that the command needs, is not installed; the message says which."""
    DIFFERENT = 8
    """What was compared differs."""
    LOG_FAILED = 74
    """The broker's log could not be written or synced. Do not restart blindly: look at the disk first."""

    @property
    def meaning(self) -> str:
        """What it says to a person, in a few words."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "refused or failed, also: the directory is locked",
    ExitCode.USAGE: "wrong command line or configuration",
    ExitCode.TIMEOUT: "timeout: nothing, or not all, was received",
    ExitCode.CANNOT_CONNECT: "cannot connect, or the connection broke",
    ExitCode.DAMAGED: "the log is damaged",
    ExitCode.NOT_FOUND: "queue, file or directory not found",
    ExitCode.NOT_INSTALLED: "Java or a package that the command needs is not installed",
    ExitCode.DIFFERENT: "what was compared differs",
    ExitCode.LOG_FAILED: "the log could not be written or synced: do not restart blindly",
}
