"""Models and whole products that their vendors have shut down. The rows of `data/retired_models.json` apply only to the
vendor's own API, since relays may still serve a model under the same id. Pure: no I/O and no clock.
"""

import re

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows


class RetiredModels(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: models that exist no more at a vendor."""

    models: str
    vendor: str
    retired: str
    instead: str = ""
    """Models that the vendor offers in place of these; "" if there is none."""
    refused: bool = False
    """Whether the gateway refuses calls, since they certainly fail: by the vendor's SDK or by two sources."""
    source: str
    as_of: str


RETIRED_MODELS = tuple(read_rows("retired_models", RetiredModels))
"""Rows of the data file; the first that matches applies."""


def retirement(model: str, vendor: str) -> RetiredModels | None:
    """Return the row of a model at a vendor; None if the model is not known to be shut down. `model`: vendor's id, or a
    pattern, which matches a row only if the row covers all its ids.
    """
    for row in RETIRED_MODELS:
        if vendor == row.vendor and re.fullmatch(row.models, model.replace("*", "any")):
            return row
    return None
