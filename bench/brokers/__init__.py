"""The measured brokers: each is a child process in a directory of its own, on a free port of the loopback.

Rule 1. The CPU of a broker is the user and system time of its process and all descendants; its memory is their
        resident sets. RabbitMQ is a shell, beam.smp and some port programs; AmberMQ one interpreter; Artemis one JVM.
Rule 2. A peer that is not installed is no failure of a run: its columns stay empty, and the run says why.

Imports: bench/brokers, tools/client.
Imported by: bench, bench/measures, bench/stalls.
Names: Broker, AmberMQ, Artemis, RabbitMQ.
"""
