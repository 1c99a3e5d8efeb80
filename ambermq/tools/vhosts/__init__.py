"""The command `vhost`: virtual hosts listed, made, copied, emptied and deleted.

Rule 1. A running broker alone changes its virtual hosts; it is asked over `$management`.
Rule 2. Without a broker the same is done under the lock of the data directory.

Imports: engine/*, log/*, protocol/management, tools/backup, tools/broker, tools/client, tools/terminal.
Imported by: tools/snapshots.
Names: vhost, copy_log.
"""
