"""The broker's configuration: TOML in, limits and schedules out.

Rule 1. Pure: text and numbers in, values out.
Rule 2. A key is the name of a field; no second list of keys exists.
Rule 3. An unknown key or a bad value is one message with file, table and name.

Imports: engine/*, log, log/format, log/manifest, protocol/*, tools/terminal.
Imported by: tools/broker, tools/settings, tools/wiring.
Names: Settings, load_settings, SettingsSource, Key, CompactionConfig, RetentionSchedule, AttachmentOptions.
"""
