"""Query parameters that model lists of the messages and the native format share."""

from collections.abc import Mapping
from typing import TypeAlias

from umg_grpc.wire.core.json_decoding import invalid

Query: TypeAlias = Mapping[str, str]

MAX_MODELS = 1000


def page_size(query: Query, names: tuple[str, ...], default: int) -> int:
    """Return the maximum number of models in the page: the value of the first parameter in `names` that is present,
    otherwise `default`. Raise UmgError(INVALID_FIELD) unless it is a whole number from 1 to 1000.
    """
    for name in names:
        if (given := query.get(name)) is not None:
            if not (given.isascii() and given.isdecimal() and len(given) < 10 and 1 <= int(given) <= MAX_MODELS):
                raise invalid(name, f"expected a whole number from 1 to {MAX_MODELS}; correct its value")
            return int(given)
    return default
