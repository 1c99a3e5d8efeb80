"""A persistent column against a dict, with every version kept and looked at again at the end."""

import sys

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ambermq.snapshot.persistent_column import EMPTY_COLUMN, PersistentColumn
from ambermq.snapshot.word_chunk import unpack_words

KEYS = st.lists(st.integers(0, 3000) | st.integers(2**47, 2**47 + 600), unique=True, max_size=40).map(sorted)
VALUES = st.integers(1, 2**63)


class ColumnMachine(RuleBasedStateMachine):
    """The column does what a dict does, and no version of it changes afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.column = EMPTY_COLUMN
        self.model: dict[int, int] = {}
        self.versions: list[tuple[PersistentColumn, dict[int, int]]] = []

    def become(self, column: PersistentColumn) -> None:
        self.versions.append((self.column, dict(self.model)))
        self.column = column

    @rule(keys=KEYS, value=VALUES)
    def set_one(self, keys: list[int], value: int) -> None:
        self.become(self.column.with_value(keys, value))
        self.model.update(dict.fromkeys(keys, value))

    @rule(keys=KEYS, draw=st.data())
    def set_each(self, keys: list[int], draw: st.DataObject) -> None:
        values = draw.draw(st.lists(VALUES, min_size=len(keys), max_size=len(keys)))
        self.become(self.column.with_values(keys, values))
        self.model.update(zip(keys, values, strict=True))

    @rule(keys=KEYS)
    def remove(self, keys: list[int]) -> None:
        self.become(self.column.without(keys))
        for key in keys:
            self.model.pop(key, None)

    @rule(step=st.integers(1, 4))
    def remove_some_of_its_own(self, step: int) -> None:
        self.remove(sorted(self.model)[::step])

    @rule(start=st.integers(0, 40), count=st.integers(1, 40))
    def remove_neighbours(self, start: int, count: int) -> None:
        self.remove(sorted(self.model)[start : start + count])

    @rule(keys=KEYS)
    def get(self, keys: list[int]) -> None:
        assert [self.model.get(key, 0) for key in keys] == [self.column.get(key) for key in keys]
        assert [self.model.get(key, 0) for key in keys] == self.column.values_of(keys)

    @invariant()
    def its_items_are_those_of_the_model(self) -> None:
        assert sorted(self.model.items()) == list(self.column.items())
        assert len(self.model) == self.column.count

    @invariant()
    def equal_items_are_equal_columns(self) -> None:
        again = EMPTY_COLUMN.with_values(sorted(self.model), [self.model[key] for key in sorted(self.model)])
        assert again == self.column

    def teardown(self) -> None:
        for column, model in self.versions:
            assert sorted(model.items()) == list(column.items())


TestColumnMachine = ColumnMachine.TestCase
TestColumnMachine.settings = settings(max_examples=50, stateful_step_count=25, deadline=None)


def test_a_key_takes_less_than_twenty_bytes() -> None:
    """Keys that come one by one fill their blocks."""
    column = EMPTY_COLUMN
    for key in range(0, 40_000, 2):
        column = column.with_value([key], key + 1)

    blocks = [keys + values for keys, values in column.blocks()]

    assert sum(map(sys.getsizeof, blocks)) < 20 * column.count
    assert [len(unpack_words(keys)) for keys, _ in column.blocks()][:-1] == [256] * (len(blocks) - 1)
