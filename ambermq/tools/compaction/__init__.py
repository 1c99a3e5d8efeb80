"""The command `log compact`: one compaction, from the lock to the commit, on this machine or on Spark.

Rule 1. Until the commit the log only gains two snapshots; a compaction that wins nothing commits nothing.
Rule 2. A running broker alone changes its log: it takes the snapshots and commits.
Rule 3. A task may run twice or end half way: its file has a name of its own.
Rule 4. Bodies of messages never enter the Java process.

Imports: engine/*, log/*, protocol/management, tools/broker, tools/client, tools/dataset, tools/past, tools/spark,
    tools/terminal.
Imported by: bench, the table of commands by name.
Names: Outcome, Runner, LocalRunner, SparkRunner.
"""
