"""The users and rules of a running broker: their files, the threads that check passwords, and the requests.

Rule 1. A change is durable in the file before the table has it, and before its answer.
Rule 2. A damaged file refuses the start with exit code 2: it never opens the door.

Imports: engine, log/manifest, log/storage, protocol, protocol/amqp10/*, protocol/auth, protocol/auth/sasl,
    protocol/management, protocol/management/access, protocol/server, protocol/server/listeners, tools/config,
    tools/terminal.
Imported by: tools/access, tools/broker.
Names: UserAdministration, LoginThreads, RuleFile, RuleStore, load_users, save_users, check_users.
"""
