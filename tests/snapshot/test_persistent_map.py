"""The persistent map against a dict, with every version kept and looked at again at the end."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ambermq.snapshot.persistent_map import PersistentMap


class Colliding(int):
    """A key whose hash it shares with many, so that the trie's collision nodes are met."""

    __slots__ = ()

    def __hash__(self) -> int:
        return int(self) % 3

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Colliding) and int(self) == int(other)


KEYS = st.one_of(st.integers(0, 40), st.text(max_size=2), st.integers(0, 12).map(Colliding))


class MapMachine(RuleBasedStateMachine):
    """The map does what a dict does, and no version of it changes afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.map: PersistentMap[object, int] = PersistentMap()
        self.model: dict[object, int] = {}
        self.versions: list[tuple[PersistentMap[object, int], dict[object, int]]] = []

    def keep(self) -> None:
        self.versions.append((self.map, dict(self.model)))

    @rule(key=KEYS, value=st.integers())
    def set(self, key: object, value: int) -> None:
        self.keep()
        self.map = self.map.set(key, value)
        self.model[key] = value

    @rule(draw=st.data())
    def delete(self, draw: st.DataObject) -> None:
        if self.model:
            key = draw.draw(st.sampled_from(list(self.model)), label="key")
            self.keep()
            self.map = self.map.delete(key)
            del self.model[key]

    @rule(key=KEYS)
    def delete_absent(self, key: object) -> None:
        if key not in self.model:
            try:
                self.map.delete(key)
            except KeyError:
                return
            raise AssertionError(f"{key!r} was deleted from a map that lacks it")

    @rule(key=KEYS)
    def get(self, key: object) -> None:
        assert self.model.get(key) == self.map.get(key)
        assert (key in self.model) == (key in self.map)

    @rule(changes=st.dictionaries(KEYS, st.integers(), max_size=8), dropped=KEYS)
    def mutate(self, changes: dict[object, int], dropped: object) -> None:
        self.keep()
        with self.map.mutate() as draft:
            draft.update(changes)
            draft.pop(dropped, None)
            self.map = draft.finish()
        self.model.update(changes)
        self.model.pop(dropped, None)

    @rule(draw=st.data())
    def return_to_an_old_version(self, draw: st.DataObject) -> None:
        if self.versions:
            self.map, words = draw.draw(st.sampled_from(self.versions), label="version")
            self.model = dict(words)

    @invariant()
    def length_is_the_model_s(self) -> None:
        assert len(self.model) == len(self.map)

    def teardown(self) -> None:
        for version, model in [*self.versions, (self.map, self.model)]:
            assert model == dict(version.items())
            assert PersistentMap(model) == version


TestMapMachine = MapMachine.TestCase
TestMapMachine.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
