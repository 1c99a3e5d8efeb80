"""Walking and reading single segments, and finding where the last ones end.

Rule 1. A walk yields only batches whose heads are what was written, and ends at the first other one.
Rule 2. A walk decides nothing: `survey` compares its end with the durable end, and tells a tail from damage.
Rule 3. Nothing is written here but copies of batches into a new segment.

Imports: log, log/format, log/manifest, log/storage.
Imported by: log/index, log/compaction, log/read, log/recovery, tools.
Names: BatchWalk, SegmentReader, TailSurvey, survey.
"""
