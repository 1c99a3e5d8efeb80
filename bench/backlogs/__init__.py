"""What very many messages of one queue cost: those that wait, and those that are scheduled for later.

Rule 1. Each module is a command with bars of its own.
Rule 2. Memory is the resident set of the broker alone, read all the time.

Imports: bench, bench/brokers, bench/client, ambermq/*.
Imported by: nothing; run as `python -m bench.backlogs.longqueue` and `python -m bench.backlogs.scheduled`.
Names: main.
"""
