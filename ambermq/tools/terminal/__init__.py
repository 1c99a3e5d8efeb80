"""The parts that all commands share: output, errors, exit codes, progress, sizes and durations.

Rule 1. Standard output is for results; progress, advice and failures go to standard error.
Rule 2. A listing is a table for people, JSON or NDJSON for programs. No command starts a pager.
Rule 3. A command that destroys asks on a terminal; --yes answers.
Rule 4. Exit codes are public, and exit_codes.py lists them.

Imports: ambermq, engine, log, protocol/amqp10, protocol/amqp10/types.
Imported by: every other package of tools but spec.
Names: ToolError, ExitCode, LazyGroup, print_rows, progress_bar.
"""
