"""The query of a model list, as far as two shapes read it alike."""

from collections.abc import Mapping
from typing import TypeAlias

from umg_grpc.wire.json import invalid

Query: TypeAlias = Mapping[str, str]

MOST_MODELS = 1000
"""Of a page (text formats, 3.7)."""


def page_size(query: Query, names: tuple[str, ...], default: int) -> int:
    """The most models of a page, by the first of the names that is given. Raises UmgError(INVALID_FIELD) for any other
    than a whole number from 1 to 1000, which is never brought into its range (readings, 1).
    """
    for name in names:
        if (given := query.get(name)) is not None:
            if not (given.isascii() and given.isdecimal() and 1 <= int(given[:9]) <= MOST_MODELS):
                raise invalid(name, f"expected a whole number from 1 to {MOST_MODELS}; correct its value")
            return int(given)
    return default
