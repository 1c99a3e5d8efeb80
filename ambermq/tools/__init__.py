"""The command line, and the code of its commands.

Rule 1. cli.py is the table of commands; a command is imported when it is run.
Rule 2. A failure is one line (what, where, expected, found, what to do) and an exit code, never a traceback.
Rule 3. A command that reads a log runs at low priority and at a limited rate, to spare a running broker.
Rule 4. Only tools imports click, rich, pyarrow and Spark.

Imports: ambermq, engine/*, log/*, protocol/*, tools/*.
Imported by: ambermq.__main__, bench.
Names: main.
"""
