"""The generator of the AMQP tables and classes from the OASIS XML: for development, not in the wheel.

Rule 1. The XML is the only source; no fact of it is written by hand.
Rule 2. The output is checked in, and equal for equal input; `make spec` compares the two.

Imports: no package of ambermq.
Imported by: the command `python -m ambermq.tools.spec`.
Names: main.
"""
