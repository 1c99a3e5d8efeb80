"""The interface between the log and the machine: files, locks, syncs, threads and random salts.

Rule 1. Everything that touches a file goes through `Storage`; tests put a simulated disk in its place.
Rule 2. A lane, a worker thread, shares with the loop only the values that they exchange; an eventfd wakes the loop.
Rule 3. A failed sync is final: no later sync is tried.

Imports: log.
Imported by: the packages of log above it, engine, tools.
Names: Storage, File, Lock, DiskStorage, SteadyFile, SyncLane, GroupCommit, ThreadWorkers, draw_salt.
"""
