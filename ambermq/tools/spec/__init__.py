"""The generator of the AMQP tables and classes from the OASIS XML: for development, not in the wheel.

Rule 1. The XML is the source; nothing that it says is typed a second time.
Rule 2. The output is checked in, and equal for equal input; `make spec` compares them.

Imports: nothing of ours.
Imported by: the command `python -m ambermq.tools.spec`.
Names: main.
"""
