"""The command `config`: show, check, explain and reload the configuration.

Rule 1. No output has a password.
Rule 2. `show`, `check` and `explain` need no broker. `reload`, and `show` with --url or --data, ask the running one.

Imports: protocol/management/administration, tools/client, tools/config, tools/terminal.
Imported by: tools.
Names: config, toml_of.
"""
