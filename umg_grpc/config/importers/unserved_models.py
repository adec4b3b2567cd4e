"""Texts of the reasons why the converted config does not call a model of another gateway's config."""

from collections.abc import Mapping

from umg_grpc.operations import OPERATION_ROWS

RESULT_PHRASES: Mapping[str, str] = {**{row.scope: row.results for row in OPERATION_ROWS}, "": "texts or embeddings"}
"""Scope of a model's operations -> plural noun of its results; "" for a pattern of models of any usual scope."""
CONVERSE_ADVICE = (
    "Bedrock serves it by no API of texts: of models of other makers, list the ids in a channel of `bedrock-converse`"
)
VERTEX_MAKERS = (
    "of the models at Vertex AI those of Google, Anthropic and Mistral and open models are served; call the maker of"
    " others itself"
)
VERTEX_KEYS = "API keys at Vertex AI call the models of Google alone: use a service account"
IMPORTED_MODEL = "imported models at Bedrock are called by InvokeModel in a format of their own, which is not served"
PROFILE_ADVICE = (
    "an ARN does not show the maker of its model: let the public id contain the id of the model, for example"
    " `amazon.titan-embed-text-v2`"
)
NO_BEDROCK_ID = "no id of Bedrock, which begins with its maker, for example `anthropic.`: write that id"


def unserved_at_bedrock(model: str) -> str:
    """Return the reason why a model is not called at Amazon Bedrock. `model`: its Bedrock id, or another name."""
    return CONVERSE_ADVICE if "." in model or "*" in model else NO_BEDROCK_ID
