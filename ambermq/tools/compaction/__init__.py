"""The command `log compact`: one compaction, from the lock to the commit, on this machine or on Spark.

Rule 1. Until the commit the log only gains two snapshots; a compaction that frees no space commits nothing.
Rule 2. Only a running broker changes its log: it takes the snapshots and commits.
Rule 3. A task may run twice or be interrupted: each try writes its own file.
Rule 4. Bodies of messages never enter the Java process.

Imports: engine/*, log/*, protocol/management, tools/broker, tools/client, tools/dataset, tools/past, tools/spark,
    tools/terminal.
Imported by: bench, the table of commands by name.
Names: Outcome, Runner, LocalRunner, SparkRunner.
"""
