"""A copy of a log as it was at one of its snapshots.

A backup is written and restored: what is copied is the snapshot and the messages that were live in it, each checked,
and a log with an id of its own comes of it, whose history begins there.
"""

from pathlib import Path
from typing import Final

from ambermq.tools.backup.export import export_backup
from ambermq.tools.backup.format import Table
from ambermq.tools.backup.restore import restore_backup

__all__ = ["copy_log"]

_BACKUP_NAME: Final = "copy.backup"


def copy_log(source: str, snapshot: str, target: str) -> Table:
    """Make a log in the directory `target` of a snapshot of the log in `source`, and return what is in it.

    Raises what `export_backup` and `restore_backup` raise; what is left in `target` then is no log.
    """
    Path(target).mkdir(parents=True, exist_ok=True)
    backup = Path(target) / _BACKUP_NAME
    table = export_backup(source, snapshot, str(backup), as_directory=False)
    restore_backup(str(backup), target)
    backup.unlink()
    return table
