"""Embedding models whose vectors may be shortened (Matryoshka representation learning): the first numbers of a vector
are a valid vector of the model. The rows are in `data/matryoshka_models.json`. Pure.
"""

import re
from functools import lru_cache

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows


class MatryoshkaModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: models, and the shortest vector length that their vendor documents."""

    models: str
    """Pattern of a part of the lower-case model id: at the start, or after a slash, a colon or a hyphen."""
    shortest: int = 1
    source: str
    as_of: str


MATRYOSHKA_MODELS = tuple(read_rows("matryoshka_models", MatryoshkaModel))
"""Rows of the data file; the first that matches applies."""


@lru_cache(maxsize=1024)
def shortest_vector(model: str) -> int | None:
    """Return the shortest length to which vectors of a model may be cut; None if no cut is known to be valid."""
    for row in MATRYOSHKA_MODELS:
        if re.search(rf"(?:^|[/:-])(?:{row.models})(?![a-z0-9])", model.lower()):
            return row.shortest
    return None
