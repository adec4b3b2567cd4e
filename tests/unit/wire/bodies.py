"""Bodies of a format, drawn from its structs."""

from collections.abc import Callable, Iterator, Mapping
from random import Random

from msgspec import Struct, inspect

Draw = Callable[[Random, int], object]
"""Random numbers, and the depth of the value in its document -> the value."""

DRAWN = 2000
"""Bodies of one format."""
DEEPEST = 10
"""Depth from which lists and objects contain no more than they must."""
NUMBERS = (-3, -2.5, -2, -1, 0, 1, 2, 2.5, 3, 20, 21, 50.0, 51, 128, 129, 100.5, 1024, 1025, 2**31, 2**63, 1e300)
TEXTS = (
    "",
    "a",
    "low",
    "auto",
    "required",
    "user",
    "5m",
    "x" * 600,
    "data:image/png;base64,aGk=",
    "http://h/i.png",
    "aGk=",
)
NAMES = (*TEXTS, *map(str, range(60)))
"""Names of the members of a map; 64 members are the most that any map may have."""


def one_of(*values: object) -> Draw:
    return lambda random, _: random.choice(values)


def either(*draws: Draw) -> Draw:
    return lambda random, depth: random.choice(draws)(random, depth)


def a_list(draw: Draw, most: int) -> Draw:
    return lambda random, depth: [draw(random, depth + 1) for _ in range(_count(random, depth, most))]


def a_map(draw: Draw, most: int) -> Draw:
    return lambda random, depth: {
        name: draw(random, depth + 1) for name in random.sample(NAMES, _count(random, depth, most))
    }


def a_full_map(draw: Draw) -> Draw:
    return lambda random, _: {name: draw(random, DEEPEST) for name in NAMES}


def _count(random: Random, depth: int, most: int) -> int:
    return random.randint(0, most) if depth < DEEPEST else 0


LEAF = either(one_of(None), one_of(False, True), one_of(*NUMBERS), one_of(*TEXTS))
MAP = a_map(LEAF, 40)
ANYTHING = either(LEAF, a_list(LEAF, 6), MAP, a_list(MAP, 3))


class Bodies:
    """Bodies of one format, drawn from its structs."""

    def __init__(
        self,
        whole: type[Struct],
        right: Mapping[str, object],
        kinds: Mapping[str, type[Struct]] | None = None,
        plain: tuple[type[Struct], ...] = (),
    ) -> None:
        """Initialize. `right` is accepted. `kinds` (by `type`) and `plain` (without a `type`) are the structs that may
        occur where a struct keeps the JSON raw: blocks, items and tools.
        """
        self.right = right
        self._structs: dict[type[Struct], Draw] = {}
        self._fields = {each.encode_name: self._of(each.type) for each in struct_info(whole).fields}
        blocks = [_typed(kind, self._of(struct_info(struct))) for kind, struct in (kinds or {}).items()]
        self._raw = either(*blocks, *(self._of(struct_info(struct)) for struct in plain), MAP, one_of(*TEXTS))

    def some(self) -> Iterator[dict[str, object]]:
        """Yield bodies that are valid except for a few fields, whose values are of their type, or anything; the same in
        each run.
        """
        random = Random(0)
        for _ in range(DRAWN):
            yield self.draw(random, 0)

    def draw(self, random: Random, depth: int) -> dict[str, object]:
        """Return one of the bodies."""
        names = random.sample(sorted(self._fields), random.randint(0, min(3, len(self._fields))))
        values = {name: random.choice([self._fields[name]] * 3 + [ANYTHING])(random, depth + 1) for name in names}
        return {**self.right, **values}

    def _of(self, info: inspect.Type) -> Draw:
        """Return the function that draws values of a type, in its range and around it."""
        match info:
            case inspect.StructType():
                return self._struct(info.cls)
            case inspect.UnionType():
                return either(*map(self._of, info.types))
            case inspect.ListType() | inspect.CollectionType():
                return a_list(self._of(info.item_type), 2)
            case inspect.DictType():
                value = self._of(info.value_type)
                return either(a_map(value, 3), a_full_map(value), MAP)
            case inspect.LiteralType():
                return one_of(*info.values, *info.values, *info.values, "other")
            case inspect.IntType() | inspect.FloatType():
                return one_of(*NUMBERS)
            case inspect.BoolType():
                return one_of(False, True)
            case inspect.StrType():
                return one_of(*TEXTS)
            case inspect.NoneType():
                return one_of(None)
            case _:
                return self._draw_raw

    def _draw_raw(self, random: Random, depth: int) -> object:
        return self._raw(random, depth)

    def _struct(self, struct: type[Struct]) -> Draw:
        def draw(random: Random, depth: int) -> object:  # made at the first value, as structs contain themselves
            if struct not in self._structs:
                self._structs[struct] = self._members(struct_info(struct))
            return self._structs[struct](random, depth)

        return draw

    def _members(self, info: inspect.StructType) -> Draw:
        required = {each.encode_name: self._of(each.type) for each in info.fields if each.required}
        optional = [(each.encode_name, self._of(each.type)) for each in info.fields if not each.required]

        def draw(random: Random, depth: int) -> dict[str, object]:
            some = random.sample(optional, _count(random, depth, min(4, len(optional))))
            return {name: value(random, depth + 1) for name, value in (*required.items(), *some)}

        return draw


def struct_info(struct: type[Struct]) -> inspect.StructType:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return info


def _typed(kind: str, block: Draw) -> Draw:
    def draw(random: Random, depth: int) -> object:
        drawn = block(random, depth)
        return {**drawn, "type": kind} if isinstance(drawn, dict) else drawn

    return draw
