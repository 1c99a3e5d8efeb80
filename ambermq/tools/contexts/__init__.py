"""`ambermq context`: named brokers in the user's directory for configuration.

Rule 1. A command changes the file of contexts, and connects to no broker.
Rule 2. No secret is stored: a password stays in its own file.

Imports: tools/client, tools/terminal.
Imported by: tools.
Names: context.
"""
