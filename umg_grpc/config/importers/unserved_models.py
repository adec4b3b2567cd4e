"""Words of the reasons for which a model of another gateway's config is not called by the converted one."""

from collections.abc import Mapping

PHRASES: Mapping[str, str] = {
    "generate": "texts",
    "embed": "embeddings",
    "rerank": "rankings",
    "images": "images",
    "videos": "videos",
    "": "texts or embeddings",
}
"""Kind of a model -> plural noun of its results; "" for a pattern of models, which may be of any usual kind."""
CONVERSE = "Bedrock serves other models only by Converse and InvokeModel, which are not served"
VERTEX_MAKERS = "of the models at Vertex AI only Gemini and Veo are served; call the maker of others itself"
