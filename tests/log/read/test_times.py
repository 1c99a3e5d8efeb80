"""Lookups by time in logs whose clock was set back: the last offset at or before a time, and nothing else."""

import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.read.log_reader import open_reader
from ambermq.log.storage.disk import DiskStorage
from tests.log.lives import CONFIG, Life, body_of


@settings(max_examples=40, deadline=None)
@given(
    batches=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 3), st.booleans()), min_size=1, max_size=60),
    ends_clean=st.booleans(),
)
def test_a_lookup_by_time_finds_the_last_offset_at_or_before_it(
    batches: list[tuple[int, int, bool]], ends_clean: bool
) -> None:
    """Whatever the order of times is, with indexes and without, across segments and starts."""
    with tempfile.TemporaryDirectory() as directory:
        life, times = Life(DiskStorage(), directory), dict[int, int]()
        for number, (time_us, count, begins) in enumerate(batches):
            for index in range(count):
                offset = life.log.draft.add(
                    7, timestamp_us=time_us, body=body_of(number, 400 if begins else 20), id_hash=index, meta=b""
                )
                times[offset] = time_us
            life.log.draft.end_command()
            life.log.write(1_000_000)
            life.sync()
            life.log.completed()
            if begins and number % 4 == 0:
                if ends_clean:
                    life.log.close()
                else:
                    life.log._workers.close()
                    life.log._lock.release()
                life = Life(DiskStorage(), directory)
        life.log.close()
        with open_reader(directory, CONFIG) as reader:
            for time_us in range(62):
                expected = max((offset for offset, at in times.items() if at <= time_us), default=None)
                assert reader.offset_at(time_us) == expected
