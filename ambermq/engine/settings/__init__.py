"""The settings of queues: their values, and what each of them may be.

Rule 1. A setting has one name everywhere: in management, templates, wiring documents, commands and events.
Rule 2. 0, an empty text or `none` switches a setting off. A request that names no value leaves it as it is.

Imports: engine, engine/selectors.
Imported by: engine, engine/model, engine/decide, engine/dispatch, engine/events, engine/history, engine/snapshots,
    protocol/management, tools/config, tools/wiring.
Names: Settings, SETTINGS, Setting.
"""
