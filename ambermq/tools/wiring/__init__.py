"""The commands about queues, muxers, attachments and subscriptions, and wiring as one document.

Rule 1. Each change is tried in memory first (dry_run.py), so a refusal comes before the first request.
Rule 2. read(write(document)) == document, and applying a document twice changes nothing.
Rule 3. For the present the commands send requests to `$management`; a past moment is read from the log.

Imports: engine/*, protocol/gateway/links, protocol/management, tools/client, tools/config, tools/past,
    tools/terminal.
Imported by: the table of commands, by name.
Names: WiringManagement, WiringRows, DryRun, wiring_rows.
"""
