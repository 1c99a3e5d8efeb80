"""Snapshots at random moments of random histories, over a disk that fails and forgets at any step.

The model's broker recovers by snapshots and holds what it finds against the states that it has seen live: so a state
recovered with a snapshot is the one that a fold of everything gives.
"""

import contextlib
import errno

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from ambermq.engine.commands import DeleteSnapshot, TakeSnapshot
from ambermq.engine.snapshots.files import load_snapshot
from ambermq.log.errors import LogFailed
from ambermq.log.manifest.manifest import snapshots_path
from tests.log.lives import DIRECTORY
from tests.model.test_durable_loop import ENDINGS, PACES, PICK, DurableLoopMachine


class SnapshotMachine(DurableLoopMachine):
    """As before, and snapshots are taken, deleted, damaged and cut short."""

    def teardown(self) -> None:
        try:
            if hasattr(self, "broker"):
                self.look()
        finally:
            super().teardown()

    @rule(waits=st.booleans(), pace=PACES)
    def take(self, pace: str, *, waits: bool) -> None:
        self.broker.loop.submit(TakeSnapshot("key", "", waits))
        self.go_on(pace)

    @rule()
    def take_by_itself(self) -> None:
        """As if so much had been logged, and long ago."""
        self.broker.loop.snapshots.start(self.broker.now_us - 3_600_000_000, logged_bytes=1 << 40)

    @rule(pick=PICK, pace=PACES)
    def delete(self, pick: int, pace: str) -> None:
        snapshots = self.broker.loop.log.manifest.snapshots
        if snapshots:
            self.broker.loop.submit(DeleteSnapshot("key", snapshots[pick % len(snapshots)].name))
            self.go_on(pace)

    @rule(calls=st.integers(0, 60), ending=ENDINGS)
    def die_while_taking(self, calls: int, ending: str) -> None:
        """The disk fails at any call while one is written, named or deleted, and the broker ends with it."""
        broker = self.broker
        broker.loop.submit(TakeSnapshot("key"))
        broker.step(0)
        broker.storage.fail(errno.EIO, after=calls)
        with contextlib.suppress(LogFailed):
            for _ in range(4):
                broker.completed()
        broker.die("kill" if ending == "kill" else "crash", is_whole=False)
        self.look()
        self.come_back()

    @precondition(lambda self: self.broker.loop.log.manifest.snapshots)
    @rule(pick=PICK, bit=st.integers(0, 7), ending=ENDINGS)
    def die_and_find_damage(self, pick: int, bit: int, ending: str) -> None:
        """The newest snapshot is damaged: the one before it, or the log alone, gives the same state."""
        broker = self.broker
        newest = broker.loop.log.manifest.snapshots[-1]
        path = f"{snapshots_path(DIRECTORY)}/{newest.file_id:016x}.snapshot"
        position = pick % newest.size
        broker.storage.damage(path, position, bytes([broker.storage.content(path)[position] ^ 1 << bit]))
        broker.die("kill" if ending == "kill" else "crash")
        broker.loop.submit(DeleteSnapshot("key", newest.name))
        self.come_back()

    @rule()
    def look(self) -> None:
        """Every snapshot is what the events below its end add up to, and no other file is left."""
        broker = self.broker
        if broker.loop.failure:
            return
        for _ in range(6):
            broker.step(0)
            broker.completed()
        manifest = broker.loop.log.manifest
        assert [one.end for one in manifest.snapshots] == sorted(one.end for one in manifest.snapshots)
        for one in manifest.snapshots:
            assert one.end <= broker.loop.log.durable_end
            assert load_snapshot(broker.storage, DIRECTORY, manifest, one) == broker.history.states[one.end]
        if broker.storage.exists(snapshots_path(DIRECTORY)):
            named = {f"{one.file_id:016x}.snapshot" for one in manifest.snapshots}
            assert set(broker.storage.listdir(snapshots_path(DIRECTORY))) == named


TestSnapshots = SnapshotMachine.TestCase
TestSnapshots.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
