"""The one seam between the log and the machine: files, locks, syncs, threads and random salts.

Rule 1. Everything that touches a file goes through `Storage`; tests put a simulated disk in its place.
Rule 2. A lane shares nothing with the loop but the values that are handed over; one eventfd tells the loop.
Rule 3. A sync that failed is final: nothing is synced after it.

Imports: log.
Imported by: the rooms of log above it, engine, tools.
Names: Storage, File, Lock, DiskStorage, SyncLane, GroupCommit, ThreadWorkers, draw_salt.
"""
