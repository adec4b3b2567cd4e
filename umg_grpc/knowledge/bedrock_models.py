"""Facts about Bedrock models that differ even in the Converse API: options outside the API's common fields, and
accepted parts of prompts. The rows are in `data/bedrock_models.json`.
"""

import re
from functools import cache, lru_cache
from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.model_facts_by_id import FOUND_MODELS


class BedrockModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: models of one maker, with the options and contents that they accept. The defaults apply to a
    model without a row, for example behind the ARN of an inference profile.
    """

    models: str
    """Pattern of the beginning of the model id, after the prefix of a profile (`us.`) or the beginning of an ARN."""
    top_k: str = ""
    """Place of `top_k` in `additionalModelRequestFields`, as a dotted path; "" if there is none."""
    reasoning: Literal["", "thinking", "reasoning_config", "reasoning_effort"] = ""
    """Member of `additionalModelRequestFields` that controls reasoning; "" if there is none."""
    lone_effort: str = ""
    """Effort beside which the model takes neither sampling options nor a limit of the output; "" if there is none."""
    returned_reasoning: tuple[Literal["signed", "redacted"], ...] = ("signed", "redacted")
    """Kinds of reasoning that the model takes back in its earlier turns."""
    cache_places: tuple[Literal["system", "messages", "tools"], ...] = ("system", "messages", "tools")
    """Parts of the prompt in which cache points are accepted."""
    caches_an_hour: bool = False
    continues: bool = False
    """Whether the conversation may end with a turn of the model, which it continues."""
    source: str = ""
    as_of: str = ""


UNKNOWN_MODEL = BedrockModel(models="", caches_an_hour=True)


@lru_cache(FOUND_MODELS)
def bedrock_model(model: str) -> BedrockModel:
    """Return the facts about a model by its id, or its ARN; `UNKNOWN_MODEL` for a model without a row."""
    return next((row for row, pattern in _patterns() if pattern.match(model)), UNKNOWN_MODEL)


@cache
def _patterns() -> tuple[tuple[BedrockModel, re.Pattern[str]], ...]:
    return tuple(
        (row, re.compile(rf"(?:.*[/.])?{row.models}", re.IGNORECASE))
        for row in read_rows("bedrock_models", BedrockModel)
    )
