"""The file of the users, `DIR/users`: read and replaced as a whole.

Rule 1. The file is 0600 from its first byte. A change replaces it as a whole (log/storage/private_file.py).
Rule 2. A missing file means no stored users. A damaged one is an error with exit code 2.
Rule 3. The secret of a broker is made once: it hides which users exist (protocol/auth/users.py).
"""

import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ambermq.log.storage.private_file import replace_private_file
from ambermq.protocol.auth.users import User, Users, UsersDamaged, decode_users, encode_users
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["has_users_file", "load_users", "save_users", "users_path"]

_SECRET_BYTES: Final = 32
_FILE_BYTES_MAX: Final = 256 << 20
"""More than `users_max` users of any length."""


def users_path(directory: str) -> str:
    """Return the path of the file in a data directory."""
    return f"{directory}/users"


def has_users_file(directory: str) -> bool:
    """Return whether a data directory has the file."""
    return Path(users_path(directory)).exists()


def load_users(directory: str, iterations: int) -> Users:
    """Return the stored users; without the file none, with a new secret. Raises ToolError for a damaged file."""
    path = users_path(directory)
    try:
        with Path(path).open("rb") as file:
            text = file.read(_FILE_BYTES_MAX)
    except (FileNotFoundError, NotADirectoryError):
        return Users(secrets.token_bytes(_SECRET_BYTES), iterations=iterations)
    try:
        return decode_users(text, iterations=iterations)
    except UsersDamaged as error:
        raise ToolError(
            "the file of the users is damaged",
            where=path,
            found=str(error),
            advice="restore the file from a copy; without it the broker has no users",
            code=ExitCode.USAGE,
        ) from error


def save_users(directory: str, secret: bytes, stored: Iterable[User]) -> None:
    """Replace the file; it is durable at the return. Raises OSError, and then the old file is still there."""
    replace_private_file(users_path(directory), encode_users(secret, stored))
