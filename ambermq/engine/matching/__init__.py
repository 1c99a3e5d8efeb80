"""The attachments of one muxer, and which of them a message matches, by class of muxer.

Rule 1. An index is derived from the wiring in State: it is volatile and can be built again at any time.
Rule 2. Matching trusts its arguments: engine/decide checked them when the attachment was made.
Rule 3. Caches are bounded in number of entries and in bytes.

Imports: engine, engine/model, engine/patterns, engine/selectors.
Imported by: engine/routing, engine/decide/messages.
Names: MuxerIndex, TermIndex, AttachmentNumbers, LruCache.
"""
