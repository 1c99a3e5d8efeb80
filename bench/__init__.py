"""Measurements: speed, memory and pauses, always beside a peer in the same run.

Rule 1. A figure counts beside that of another broker, or of another version, from the same run.
Rule 2. Load comes from processes of its own (client/), which know nothing of our protocol code.
Rule 3. Nothing in ambermq/ imports bench; bench is not in the wheel.

Imports: bench/brokers, bench/client, bench/measures, bench/stalls, tools/client.
Names: SCENARIOS, run_scenario, Load.
"""
