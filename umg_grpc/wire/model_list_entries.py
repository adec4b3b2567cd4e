"""Decoding of an entry in a provider's model list, by the shapes of known lists. Unexpected members are ignored."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from umg_grpc.knowledge.model_list_shapes import ListedCapabilities, list_shapes
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT

Fields = Mapping[str, object]
MICRO_CREDITS = 1_000_000
HIGHEST_TOKEN_PRICE = 0.001
"""US dollars below which a price is that of one token, else of a million. Vendors have both, even under one name
(`pricing.input`: Vercel for a token, Together AI for a million). The most expensive models cost less for a token, the
cheapest more for a million.
"""
MAX_MICRO_CREDITS = 10**10
"""Highest price of a million tokens that is accepted. A higher price is an error in the provider's list."""
NO_OPERATION = pb.MODEL_OPERATION_UNSPECIFIED  # of an entry that states only kinds that the gateway does not support
TEXT_UNITS = frozenset({pb.BILLABLE_UNIT_INPUT_TOKEN, pb.BILLABLE_UNIT_OUTPUT_TOKEN})


@dataclass(frozen=True)
class ListedOperations:
    """Words by which providers' model lists state the operations of models."""

    words: Mapping[str, "Sequence[pb.ModelOperation.ValueType]"]
    """Word for a kind of model, in lower case -> operations."""
    id_parts: Mapping[str, "pb.ModelOperation.ValueType"]
    """Part of a model's id, in lower case -> operation, for lists that state no kind. The first match counts."""


def add_facts(model: pb.Model, entry: Fields, listed: ListedOperations) -> bool:
    """Set the facts in a model's list entry. Return False if the provider no longer has the model."""
    model.operations.extend(_operations(entry, model.id, listed))
    _set_limits(model, entry)
    model.prices.extend(_prices(entry))
    for shape in list_shapes():
        if shape.capabilities is not None and not model.HasField("capabilities"):
            _set_capabilities(model, entry, shape.capabilities)
        for member, lifecycles in shape.lifecycles.items():
            for state in filter(None, map(lifecycles.get, _words(_value(entry, member), member))):
                if state == "retired":
                    return False
                model.lifecycle = pb.MODEL_LIFECYCLE_DEPRECATED
        for member in shape.ends:
            _set_end(model, _value(entry, member))
    return True


def _set_end(model: pb.Model, stated: object) -> None:
    if not isinstance(stated, str) or not stated:
        return
    try:
        model.retire_time.FromJsonString(f"{stated}T00:00:00Z" if len(stated) == len("2026-01-31") else stated)
    except ValueError:  # no time
        model.ClearField("retire_time")
    else:
        model.lifecycle = pb.MODEL_LIFECYCLE_DEPRECATED


@cache
def _unserved() -> frozenset[str]:
    return frozenset(word.lower() for shape in list_shapes() for word in shape.unserved)


def _operations(entry: Fields, name: str, listed: ListedOperations) -> "Sequence[pb.ModelOperation.ValueType]":
    """Return the operations of a model by the words for its kind, otherwise by its id; () if both are unknown."""
    for shape, member in ((row, member) for row in list_shapes() for member in row.kinds):
        words = [word.lower() for word in _words(_value(entry, member), member)]
        if own := [shape.operations[word] for word in words if word in shape.operations]:
            return tuple(pb.ModelOperation.Value(f"MODEL_OPERATION_{word.upper()}") for word in own)
        if known := dict.fromkeys(chain.from_iterable(listed.words.get(word, ()) for word in words)):
            return tuple(known)
        if not _unserved().isdisjoint(words):
            return (NO_OPERATION,)
    return next(((operation,) for part, operation in listed.id_parts.items() if part in name.lower()), ())


def _set_limits(model: pb.Model, entry: Fields) -> None:
    shapes = list_shapes()
    if (limit := _first_count(entry, chain.from_iterable(shape.input_tokens for shape in shapes))) is not None:
        model.input_token_limit = limit
    if (limit := _first_count(entry, chain.from_iterable(shape.output_tokens for shape in shapes))) is not None:
        model.output_token_limit = limit


def _first_count(entry: Fields, members: Iterator[str]) -> int | None:
    counts = (count_of(_value(entry, member)) for member in members)
    return next((count for count in counts if count is not None and count <= MAX_COUNT), None)


def _prices(entry: Fields) -> Iterator[pb.Price]:
    priced = set[str]()
    for member, unit_name in chain.from_iterable(shape.prices.items() for shape in list_shapes()):
        price = _number(_value(entry, member))
        if price is None or price < 0 or unit_name in priced:
            continue
        unit = pb.BillableUnit.Value(f"BILLABLE_UNIT_{unit_name.upper()}")
        micro_credits = round(price * MICRO_CREDITS * (MICRO_CREDITS if price < HIGHEST_TOKEN_PRICE else 1))
        is_repeated = unit not in TEXT_UNITS and not micro_credits  # 0 stands for none of its own
        if micro_credits <= MAX_MICRO_CREDITS and not is_repeated:
            priced.add(unit_name)
            yield pb.Price(unit=unit, micro_credits_per_million=micro_credits)


def _set_capabilities(model: pb.Model, entry: Fields, members: ListedCapabilities) -> None:
    inputs, outputs = _value(entry, members.inputs), _value(entry, members.outputs)
    tools, reasoning = _value(entry, members.tools), _value(entry, members.reasoning)
    structured = _value(entry, members.structured_output)
    if not isinstance(inputs, list) or not isinstance(outputs, list) or None in (tools, structured, reasoning):
        return
    model.capabilities.input_modalities.extend(_words(inputs))
    model.capabilities.output_modalities.extend(_words(outputs))
    model.capabilities.tools, model.capabilities.structured_output = bool(tools), bool(structured)
    control = pb.REASONING_CONTROL_LEVEL if reasoning else pb.REASONING_CONTROL_UNSPECIFIED
    model.capabilities.reasoning = control


def _value(entry: Fields, path: str) -> object:
    """Return the value of a member by its path; if that ends in a word of a list, whether it has it; else None."""
    value: object = entry
    for name in path.split("."):
        if isinstance(value, list):
            return name in value
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _words(value: object, member: str = "") -> list[str]:
    """Return the words in a value: a text, a list's texts, an object's true members, or `member` of a Boolean."""
    match value:
        case bool():
            return [member if value else f"not {member}"]
        case str():
            return [value]
        case list():
            return [word for word in value if isinstance(word, str)]
        case dict():
            return [str(name) for name, is_true in value.items() if is_true is True]
        case _:  # a number or nothing, which is no word
            return []


def count_of(value: object) -> int | None:
    """Return a count of at least 1, also from a text; None for any other value."""
    number = _number(value)
    return int(number) if number is not None and 1 <= number < 2**40 else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
