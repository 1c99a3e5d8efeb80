"""Any moment of a log, and the story of one message, read outside the event loop.

Rule 1. The state at X is the state after the event at X. A moment that the log does not have is a PastError.
Rule 2. The past ends where the log is durable, and begins at the horizon.
Rule 3. The loop opens no file for a query; a bounded number of jobs on other threads does.
Rule 4. An id is the offset of the record that created the object; its name is looked up in that record.

Imports: engine/*, log/*.
Imported by: engine/loop, protocol/gateway, protocol/server/vhosts, tools.
Names: Past, open_past, BackgroundQueries, MessageStory, find_message, changes_between.
"""
