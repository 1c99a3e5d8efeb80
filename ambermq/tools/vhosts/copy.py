"""A copy of a log at one of its snapshots, made by a backup and its restore.

The copy has the snapshot and its live messages, each checked. It has a log id of its own, and its history begins at the
snapshot.
"""

from pathlib import Path
from typing import Final

from ambermq.tools.backup.export import export_backup
from ambermq.tools.backup.format import Table
from ambermq.tools.backup.restore import restore_backup

__all__ = ["copy_log"]

_BACKUP_NAME: Final = "copy.backup"


def copy_log(source: str, snapshot: str, target: str) -> Table:
    """Copy a snapshot of the log in `source` to a new log in `target`, and return the table of the backup.

    Raises as `export_backup` and `restore_backup`; the files in `target` are not a log then.
    """
    Path(target).mkdir(parents=True, exist_ok=True)
    backup = Path(target) / _BACKUP_NAME
    table = export_backup(source, snapshot, str(backup), as_directory=False)
    restore_backup(str(backup), target)
    backup.unlink()
    return table
