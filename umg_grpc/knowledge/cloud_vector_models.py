"""Cloud models for embeddings or reranking whose body differs from model to model within one protocol. The rows are in
`data/vector_models.json`. Pure: no I/O and no clock.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows


class VectorModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: the body of the calls of some models."""

    models: str
    """Pattern of a part of the id, at its beginning or after a dot or slash; "" for all other models."""
    protocol: str
    shape: str
    """Name of the body, by which the codec of the protocol makes it."""
    max_inputs: int
    length: str = ""
    """Member with the length of the vectors; "" for models that have one length alone."""
    tasks: Mapping[str, str] = {}
    """Canonical task type -> value of the same meaning; empty for models without types of tasks."""
    source: str
    as_of: str


VECTOR_MODELS = tuple(read_rows("vector_models", VectorModel))
"""Rows of the data file; the first that matches applies."""


@lru_cache(maxsize=1024)
def vector_model(protocol: str, model: str, public_id: str) -> VectorModel:
    """Return the row of a model in a protocol. `model`: provider's id; `public_id`: caller's id, which identifies the
    model if the provider's id does not (an ARN of a throughput).
    """
    rows = [row for row in VECTOR_MODELS if row.protocol == protocol]
    named = (row for each in (model, public_id) for row in rows if row.models and _is_named(row.models, each))
    return next(named, None) or next(row for row in rows if not row.models)


def max_inputs_of(protocol: str, model: str, public_id: str) -> int:
    """Return the most texts of one call of a model. Parameters: as in `vector_model`."""
    return vector_model(protocol, model, public_id).max_inputs


def _is_named(pattern: str, model: str) -> bool:
    return re.search(rf"(?:^|[./])(?:{pattern})", model, re.IGNORECASE) is not None
