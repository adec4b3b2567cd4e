"""Types of the bodies of the rerank formats, for the OpenAPI document."""

from collections.abc import Mapping
from types import MappingProxyType

from umg_grpc.wire.openapi_schemas.body_types import BodyTypes
from umg_grpc.wire.openapi_schemas.retrieval_response_types import Ranking
from umg_grpc.wire.rerank.request import V1_SHAPE, V2_SHAPE
from umg_grpc.wire.rerank.schema import RerankBody

BODY_TYPES: Mapping[str, BodyTypes] = MappingProxyType(
    dict.fromkeys((V1_SHAPE.name, V2_SHAPE.name), BodyTypes(RerankBody, Ranking))
)
