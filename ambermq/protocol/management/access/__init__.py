"""The management types about who may use the broker, which the broker itself carries out, and no engine.

Rule 1. A request becomes a command to a port; the broker writes the files of users and rules, and answers later.
Rule 2. A request changes what all virtual hosts allow, whichever virtual host its connection belongs to.
Rule 3. No answer has a secret.

Imports: engine, protocol/auth, protocol/management.
Imported by: protocol/gateway, protocol/management, protocol/server, tools/access, tools/broker/users.
Names: UserCommand, UserPort, RuleCommand, RulePort.
"""
