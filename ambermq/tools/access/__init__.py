"""The commands about who may use a broker: `ambermq user` and `ambermq acl`.

Rule 1. A command works on a directory without a broker, and through `$management` beside a running one.
Rule 2. A secret is never on a command line, and never printed.
Rule 3. A file is replaced as a whole, with mode 0600: a kill leaves the old one or the new one.
Rule 4. A damaged file ends the command, or the start of the broker, with exit code 2: it never opens the door.

Imports: engine, log, log/manifest, log/storage, protocol, protocol/auth, protocol/gateway, protocol/management/*,
    protocol/server, tools/broker/users, tools/client, tools/config, tools/terminal.
Imported by: the table of commands, by name.
Names: user, acl, BrokerUsers, StoredUsers.
"""
