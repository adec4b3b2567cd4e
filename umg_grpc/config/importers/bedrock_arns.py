"""ARNs of models at Amazon Bedrock, which configs of other gateways have in place of ids."""

import re
from typing import NamedTuple

BEDROCK_ARN = re.compile(r"arn:aws[a-z-]*:bedrock:([a-z0-9-]*):[^:]*:([a-z-]+)/(.+)")
NAMED_KINDS = frozenset({"foundation-model", "inference-profile"})
"""Kinds of resources whose ARN ends in an id that calls accept in its place (botocore 1.44.8, `modelId`)."""
IMPORTED_ID = "imported-model"
"""Kind of resources that Converse does not support (botocore 1.44.8, `ConverseRequest.modelId`)."""


class BedrockResource(NamedTuple):
    """Model at Bedrock for calls."""

    model: str
    """Id, or an ARN that has no id in it."""
    region: str
    """Region of the ARN; "" for an id."""
    kind: str
    """Kind of resource of the ARN; "" for an id."""

    @property
    def is_nameless(self) -> bool:
        """Whether the model is an ARN, which does not show its maker."""
        return self.kind not in {"", *NAMED_KINDS}


def bedrock_resource(model: str) -> BedrockResource:
    """Return the model at Bedrock that an id or an ARN names."""
    match = BEDROCK_ARN.fullmatch(model)
    if match is None:
        return BedrockResource(model, "", "")
    region, kind, name = match.groups()
    return BedrockResource(name if kind in NAMED_KINDS else model, region, kind)
