"""What very many messages of one queue cost: those that wait, that are scheduled for later, and that expire.

Rule 1. Each module is a command with bars of its own.
Rule 2. Memory is the resident set of the broker alone, read all the time.

Imports: bench, bench/brokers, bench/client, bench/stalls, ambermq/*.
Imported by: nothing; run as `python -m bench.backlogs.longqueue`, `python -m bench.backlogs.scheduled` and
    `python -m bench.backlogs.expiring`.
Names: main.
"""
