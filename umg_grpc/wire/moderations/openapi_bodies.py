"""Types of the bodies of moderations, for the OpenAPI document."""

from msgspec import Struct

from umg_grpc.wire.moderations.request import FORMAT_NAME, ModerationBody
from umg_grpc.wire.openapi_schemas.body_types import BodyTypes


class Moderation(Struct, kw_only=True):
    """Judgement of one content."""

    flagged: bool
    categories: dict[str, bool]
    category_scores: dict[str, float]
    category_applied_input_types: dict[str, list[str]]


class Moderations(Struct, kw_only=True):
    """Response of `POST /v1/moderations`."""

    id: str
    model: str
    results: list[Moderation]


BODY_TYPES = {FORMAT_NAME: BodyTypes(ModerationBody, Moderations)}
