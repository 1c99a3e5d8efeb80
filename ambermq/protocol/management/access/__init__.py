"""The management types about who may use the broker, which the broker itself carries out, and no engine.

Rule 1. A request becomes a command to a port; the broker owns users and answers later.
Rule 2. No answer has a secret.

Imports: engine, protocol/management.
Imported by: protocol/gateway, protocol/management, protocol/server, tools/access, tools/broker/users.
Names: UserCommand, UserPort.
"""
