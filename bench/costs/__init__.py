"""What features cost a broker that has them on: the rates of two brokers of one tree, side by side.

two_brokers.py has what both commands share.

Imports: bench, bench/brokers, ambermq/*.
Imported by: nothing; run as `python -m bench.costs.levels` and `python -m bench.costs.overhead`.
Names: main.
"""
