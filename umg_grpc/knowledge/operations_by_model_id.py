"""Operations of models by model id, whichever provider serves them. Pure: no I/O and no clock."""

import re
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.model_catalogue import describe
from umg_grpc.knowledge.model_id_spellings import spellings
from umg_grpc.v1 import pb

if TYPE_CHECKING:
    from collections.abc import Iterable

FOUND_MODELS = 16_384
"""Number of ids whose operations are cached: more than the largest model list that is read has."""


class OperationsRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Operations of all models whose id matches. The first row that matches decides."""

    models: str
    """Regular expression of the whole id, as providers or as its maker write it, in lower case."""
    operations: tuple[str, ...]
    """Names of the operations, in lower case: of `umg.v1`, or of operations that the gateway does not serve."""
    source: str
    as_of: str

    @cached_property
    def values(self) -> "frozenset[pb.ModelOperation.ValueType]":
        return operations_named(
            name for name in self.operations if _value(name) in pb.ModelOperation.DESCRIPTOR.values_by_name
        )

    @cached_property
    def ids(self) -> re.Pattern[str]:
        return re.compile(self.models)


def operations_named(names: "Iterable[str]") -> "frozenset[pb.ModelOperation.ValueType]":
    """Return the operations with these names of the schema, for example `edit_image`. Raise ValueError for others."""
    return frozenset(pb.ModelOperation.Value(_value(name)) for name in names)


def _value(name: str) -> str:
    return f"MODEL_OPERATION_{name.upper()}"


@lru_cache(FOUND_MODELS)
def known_operations(model: str) -> "frozenset[pb.ModelOperation.ValueType] | None":
    """Return the operations of a provider's model; None if neither the catalogue nor a row has the id, as for most text
    models. Empty if the gateway serves none of the model's operations, for example transcription.
    """
    if (described := describe(model)) is not None:
        return frozenset(described.operations)
    ids = {model.lower(), *spellings(model)}
    return next((row.values for row in _rows() if any(row.ids.fullmatch(each) for each in ids)), None)


@cache
def _rows() -> tuple[OperationsRow, ...]:
    return tuple(read_rows("model_operations", OperationsRow))


UNSERVED_OPERATIONS = tuple((row.ids, row.operations[0]) for row in _rows() if not row.values)
"""(pattern of model ids in lower case, operation), for models whose only operation the gateway does not serve."""
