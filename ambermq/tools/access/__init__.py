"""The commands about who may use a broker: `ambermq user`.

Rule 1. A command works on a directory without a broker, and through `$management` beside a running one.
Rule 2. A secret is never on a command line, and never printed.

Imports: engine, log, log/manifest, log/storage, protocol, protocol/auth, protocol/management/access,
    tools/broker/users, tools/client, tools/config, tools/terminal.
Imported by: the table of commands, by name.
Names: user, BrokerUsers, StoredUsers.
"""
