"""The command `vhost`: virtual hosts listed, created, copied, reset and deleted.

Rule 1. Only a running broker changes its virtual hosts; the command sends requests to `$management`.
Rule 2. Without a broker the command changes the files itself, under the lock of the data directory.

Imports: engine/*, log/*, protocol/management, tools/backup, tools/broker, tools/client, tools/terminal.
Imported by: tools/snapshots.
Names: vhost, copy_log.
"""
