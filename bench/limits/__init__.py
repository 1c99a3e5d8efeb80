"""What a schedule and a disk allow, whatever the broker does: models and raw measures.

Imports: nothing of the project.
Imported by: nothing.
Names: simulate, measure.
"""
