"""Operations of models by their ids, wherever they are served. Pure: no I/O and no clock."""

import re
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from umg_grpc.knowledge.catalogue import describe
from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.model_ids import spellings
from umg_grpc.v1 import pb

if TYPE_CHECKING:
    from collections.abc import Iterable

FOUND_MODELS = 16_384
"""Ids whose operations are cached: more than the largest list of a provider that is read."""


class OperationsRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Operations of all models whose id matches. The first row that matches decides."""

    models: str
    """Regular expression of the whole id, as providers or as its maker write it, in lower case."""
    operations: tuple[str, ...]
    """Names of the operations, in lower case: those of `umg.v1`, and of others that are not served."""
    source: str
    as_of: str

    @cached_property
    def values(self) -> "frozenset[pb.ModelOperation.ValueType]":
        """Those of the operations that are served, as values of the schema."""
        return operations_named(
            name for name in self.operations if _value(name) in pb.ModelOperation.DESCRIPTOR.values_by_name
        )

    @cached_property
    def ids(self) -> re.Pattern[str]:
        """Compiled expression."""
        return re.compile(self.models)


def operations_named(names: "Iterable[str]") -> "frozenset[pb.ModelOperation.ValueType]":
    """Return the operations with these names of the schema, for example `edit_image`. Raise ValueError for others."""
    return frozenset(pb.ModelOperation.Value(_value(name)) for name in names)


def _value(name: str) -> str:
    return f"MODEL_OPERATION_{name.upper()}"


@lru_cache(FOUND_MODELS)
def known_operations(model: str) -> "frozenset[pb.ModelOperation.ValueType] | None":
    """Return the operations of a provider's model; None if neither the catalogue nor a row has it, as for most models
    of texts. Empty for a model that has only operations which are not served, for example transcription.
    """
    if (described := describe(model)) is not None:
        return frozenset(described.operations)
    ids = {model.lower(), *spellings(model)}
    return next((row.values for row in _rows() if any(row.ids.fullmatch(each) for each in ids)), None)


@cache
def _rows() -> tuple[OperationsRow, ...]:
    return tuple(read_rows("model_operations", OperationsRow))


UNSERVED_OPERATIONS = tuple((row.ids, row.operations[0]) for row in _rows() if not row.values)
"""Pattern of the ids, in lower case, of models that have only an operation which is not served, and the operation."""
