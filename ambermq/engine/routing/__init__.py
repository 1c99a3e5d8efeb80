"""From a muxer to queues: the queues that a message reaches, each once, in the order in which they were attached.

Rule 1. A route is a function of the wiring in State, the message, and the draws that State counts.
Rule 2. A message visits a muxer once, even if several paths lead to it.
Rule 3. Indexes and cached routes are derived, volatile and bounded; a change of the wiring drops them.
Rule 4. Wiring is walked with a list, never by recursion.

Imports: engine, engine/events, engine/matching, engine/model, engine/selectors, log, snapshot.
Imported by: engine/decide, engine/dispatch, engine/history, engine/loop, protocol/management, tools/wiring.
Names: Router, Route, Hop, ReverseWiring.
"""
