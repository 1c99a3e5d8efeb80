"""What one scenario measures, a file each, and the logs that they need.

Rule 1. What uses memory or the interpreter's caches is measured in a process of its own.
Rule 2. A log is written by the engine's own events, in seconds, instead of by a broker.

Imports: bench, bench/brokers, ambermq/*.
Imported by: bench.
Names: measure_compact, measure_story, measure_routing, measure_pause, measure_spark_read.
"""
