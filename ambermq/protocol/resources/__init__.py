"""Resources that may run low: their watermarks, readings of the process, and the state of each.

Rule 1. A decision has two marks: one begins the state, the other ends it. So a reading near one mark does not flap.
Rule 2. A low resource stops producers only. Consumers go on, and so the broker drains.
Rule 3. Only process_usage.py reads the machine; watermarks.py and resource.py are pure.

Imports: protocol, protocol/server_limits.
Imported by: protocol/gateway, protocol/server, tools/broker.
Names: Resource, ResourceState, ResourceWatch, Watermarks, ProcessUsage.
"""
