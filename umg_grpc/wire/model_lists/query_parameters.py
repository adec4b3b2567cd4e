"""Query parameters of model lists that the messages and the native shape share."""

from collections.abc import Mapping
from typing import TypeAlias

from umg_grpc.wire.core.json import invalid

Query: TypeAlias = Mapping[str, str]

MAX_MODELS = 1000
"""Maximum of models per page (text formats, 3.7)."""


def page_size(query: Query, names: tuple[str, ...], default: int) -> int:
    """Return the maximum number of models per page, from the first of the parameters `names` that the query has. Raise
    UmgError(INVALID_FIELD) for any value but a whole number from 1 to 1000; other values are not clamped (readings, 1).
    """
    for name in names:
        if (given := query.get(name)) is not None:
            if not (given.isascii() and given.isdecimal() and len(given) < 10 and 1 <= int(given) <= MAX_MODELS):
                raise invalid(name, f"expected a whole number from 1 to {MAX_MODELS}; correct its value")
            return int(given)
    return default
