"""The load client: AMQP 1.0 written apart from ambermq/protocol, as cheap as Python allows.

Rule 1. It imports nothing of ambermq, so both brokers meet the same peer.
Rule 2. What is sent is encoded once, and frames that repeat are recognised by their bytes.

Imports: nothing of ours.
Imported by: bench.
Names: Connection, Sender, Receiver, CounterFile.
"""
