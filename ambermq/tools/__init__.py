"""What a person or a pipeline runs: the command line and the tools behind it.

Rule 1. cli.py is the table of commands; a command is imported when it is run.
Rule 2. A failure is one line (what, where, expected, found, what to do) and an exit code, never a traceback.
Rule 3. A command that reads a log leaves a running broker the disk and the processor.
Rule 4. Only tools imports click, rich, pyarrow and Spark.

Imports: ambermq, engine/*, log/*, protocol/*, tools/*.
Imported by: ambermq.__main__, bench.
Names: main.
"""
