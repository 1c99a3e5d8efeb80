"""`ambermq doctor`: what this machine does to a broker, each finding with advice.

Rule 1. A check only looks, and writes nothing but one file in the data directory, which it removes.
Rule 2. A check that cannot be made is a finding, not an error of the command.
Rule 3. A fault is what loses messages or stops a broker; what makes it slower is a warning.

Imports: log/format, log/storage, protocol/server, protocol/server/listeners, tools/broker, tools/client, tools/config,
         tools/spark, tools/terminal.
Imported by: tools.
Names: doctor, Finding, Level.
"""
