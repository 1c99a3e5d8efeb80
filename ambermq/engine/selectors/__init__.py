"""Selectors: SQL conditions over the fields of a message, in the syntax of JMS 2.0.

Rule 1. Parsing returns a Selector, or raises a SelectorError that names position and token.
Rule 2. Text and nesting are bounded, and so is the work of one evaluation; evaluating never raises.
Rule 3. A message matches only if the condition is true; unknown is no match.

Imports: engine.
Imported by: engine, engine/matching, engine/routing, engine/dispatch, engine/decide, engine/settings, protocol/gateway,
    tools/config.
Names: Selector, parse_selector, Fields.
"""
