"""The audit log of a broker: who did what, append-only, each line with the hash of the one before.

Rule 1. Files hold NDJSON lines, and are never changed but at their end. The oldest go when there are too many bytes.
Rule 2. A thread writes and syncs. The broker neither waits for it nor fails with it, unless `required` says so.
Rule 3. No line has a body, a password or a key. What clients name is escaped and cut.

Imports: protocol/auth, tools/client, tools/config, tools/terminal.
Imported by: tools, tools/broker.
Names: AuditWriter, audit.
"""
