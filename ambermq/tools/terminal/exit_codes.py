"""The exit codes of `ambermq`, on which scripts and service managers may rely."""

from enum import IntEnum

__all__ = ["ExitCode"]


class ExitCode(IntEnum):
    """The exit codes; `ambermq --help` prints the same table."""

    OK = 0
    """The command succeeded."""
    FAILED = 1
    """The command was refused or failed, or the data directory is locked. One message says why."""
    USAGE = 2
    """The command line or the configuration is wrong. The command did nothing."""
    TIMEOUT = 3
    """The timeout passed before the command received everything that it waited for."""
    CANNOT_CONNECT = 4
    """No broker answers at the address, or the connection broke."""
    DAMAGED = 5
    """Damage was found in a log; the message names file and position."""
    NOT_FOUND = 6
    """The queue, file or directory does not exist."""
    NOT_INSTALLED = 7
    """Java, or a package that the command needs, is not installed; the message says which."""
    DIFFERENT = 8
    """The things that the command compared differ."""
    NOT_AUTHENTICATED = 9
    """The broker does not accept the user name or the password."""
    NOT_ALLOWED = 10
    """No rule of the broker allows it; `ambermq acl test` explains."""
    INTERRUPTED = 130
    """Ctrl-C or SIGINT ended the command."""
    LOG_FAILED = 74
    """The broker could not write or sync its log. Check the disk before a restart."""

    @property
    def meaning(self) -> str:
        """A short explanation for people."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "success",
    ExitCode.FAILED: "refused or failed, or the data directory is locked",
    ExitCode.USAGE: "wrong command line or configuration",
    ExitCode.TIMEOUT: "timeout before everything was received",
    ExitCode.CANNOT_CONNECT: "cannot connect, or the connection broke",
    ExitCode.DAMAGED: "the log is damaged",
    ExitCode.NOT_FOUND: "queue, file or directory not found",
    ExitCode.NOT_INSTALLED: "Java or a package that the command needs is not installed",
    ExitCode.DIFFERENT: "the compared things differ",
    ExitCode.NOT_AUTHENTICATED: "not authenticated: the user name or the password is wrong",
    ExitCode.NOT_ALLOWED: "not allowed by the rules of the broker",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
    ExitCode.LOG_FAILED: "the log could not be written or synced: check the disk before a restart",
}
