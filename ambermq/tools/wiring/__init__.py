"""The commands about queues, muxers, attachments and subscriptions, and wiring as one document.

Rule 1. A change is tried in memory first (dry_run.py), so that a refusal comes before the first request.
Rule 2. read(write(document)) == document, and applying a document twice changes nothing.
Rule 3. A running broker is asked over `$management`; a past moment is read from its log.

Imports: engine/*, protocol/gateway/links, protocol/management, tools/client, tools/config, tools/past,
    tools/terminal.
Imported by: the table of commands, by name.
Names: WiringManagement, WiringRows, DryRun, wiring_rows.
"""
