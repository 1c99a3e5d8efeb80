"""Patterns of words, with `*` for one word and `#` for any number, and many patterns at once.

Rule 1. Matching costs a bounded number of steps, whatever pattern and text are.
Rule 2. A pattern is checked once, when it is accepted; matching trusts it.

Imports: engine.
Imported by: engine/model, engine/matching, engine/decide, tools/config.
Names: PatternTrie, Words, check_pattern.
"""
