"""Tests of ambermq/tools/spark: the Data Source, queries and exports."""
