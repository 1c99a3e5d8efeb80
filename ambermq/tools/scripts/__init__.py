"""The command `script`: small declarative programs of AMQP clients, and of a broker that they kill and restart.

Rule 1. A line of a script is one statement. Statements run in order; all clients are served during each wait.
Rule 2. A failure names file, line, what was expected and what was found. Chance has a seed that is printed.
Rule 3. A script's own broker and its directory never outlive the run.

Imports: protocol/amqp10, protocol/amqp10/*, protocol/auth/sasl, protocol/management, tools/broker, tools/client,
    tools/messages, tools/proxy, tools/terminal.
Imported by: nothing; tools/cli.py names its command.
Names: script, Statement, parse_script, ScriptClient, ScriptRun.
"""
