"""ARNs of models at Amazon Bedrock, which configs of other gateways contain in place of model ids."""

import re
from typing import NamedTuple

BEDROCK_ARN = re.compile(r"arn:aws[a-z-]*:bedrock:([a-z0-9-]*):[^:]*:([a-z-]+)/(.+)")
NAMED_KINDS = frozenset({"foundation-model", "inference-profile"})
"""Kinds of resources whose ARN ends in a model id that calls accept, too (botocore 1.44.8, `modelId`)."""
IMPORTED_ID = "imported-model"
"""Kind of resource that Converse cannot call (botocore 1.44.8, `ConverseRequest.modelId`)."""


class BedrockResource(NamedTuple):
    """Model id or ARN that calls of Bedrock accept, with the region and kind from the ARN."""

    model: str
    """Model id, or the whole ARN if it does not contain a model id."""
    region: str
    """Region of the ARN; "" for an id."""
    kind: str
    """Kind of resource of the ARN; "" for an id."""

    @property
    def is_nameless(self) -> bool:
        """Whether the model is an ARN without a model id, so that the maker of the model is unknown."""
        return self.kind not in {"", *NAMED_KINDS}


def bedrock_resource(model: str) -> BedrockResource:
    """Return the Bedrock model that a model id or an ARN names."""
    match = BEDROCK_ARN.fullmatch(model)
    if match is None:
        return BedrockResource(model, "", "")
    region, kind, name = match.groups()
    return BedrockResource(name if kind in NAMED_KINDS else model, region, kind)
