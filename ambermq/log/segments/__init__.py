"""Walking and reading single segments, and finding where the last ones end.

Rule 1. A walk yields only batches with a valid head, and ends at the first invalid one.
Rule 2. A walk does not judge its end: `survey` compares that with the durable end, and reports a tail or damage.
Rule 3. The only writes here are copies of batches into a new segment.

Imports: log, log/format, log/manifest, log/storage.
Imported by: log/index, log/compaction, log/read, log/recovery, tools.
Names: BatchWalk, SegmentReader, TailSurvey, survey.
"""
