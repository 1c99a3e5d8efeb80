"""The open transactions of a virtual host: their limits, the room that they keep, and their age.

Rule 1. They are volatile: a broker that stops forgets them, and what their consumers hold returns.
Rule 2. Time is an argument. The loop asks for transactions that are too old.

Imports: x, engine, engine/commands, engine/entries, log/format.
Imported by: x.
Names: OpenTransactions, Reservations.
"""
