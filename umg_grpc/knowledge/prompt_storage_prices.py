"""Storage of beginnings of prompts at vendors of the native format (`cachedContents`): minimum sizes and prices of
models. The rows are in `data/prompt_storage.json`. Pure: no I/O and no clock.
"""

import re
from decimal import Decimal
from functools import lru_cache

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

MAX_MODELS = 256
"""Models whose rows are kept, since callers may choose models of patterns."""


class StorageRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: facts about models. The first row that matches decides; the last ones are for later models."""

    models: str
    """Pattern of the whole provider's model id, after a vendor's name (`vendor/`)."""
    min_tokens: int
    """Smallest beginning of a prompt that is stored."""
    implicit: bool
    """Whether the vendor caches prompts without storage, too, for a few minutes at the same price of a read."""
    token_hours: str
    """Credits for a million tokens that are stored for an hour, beside the price of the input once."""
    source: str
    as_of: str

    @property
    def micro_credits(self) -> int:
        """Micro-credits for a million tokens that are stored for an hour."""
        return int(Decimal(self.token_hours).scaleb(6))


STORAGE_ROWS = tuple(read_rows("prompt_storage", StorageRow))


@lru_cache(MAX_MODELS)
def storage_of(model: str) -> StorageRow | None:
    """Return the row of a provider's model; None for a model whose vendor is not known to store prompts."""
    name = model.rpartition("/")[2]
    return next((row for row in STORAGE_ROWS if re.fullmatch(row.models, name, re.IGNORECASE)), None)
