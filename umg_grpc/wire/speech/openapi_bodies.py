"""Types of the bodies of speech, for the OpenAPI document."""

from msgspec import Struct

from umg_grpc.wire.openapi_schemas.body_types import BodyTypes
from umg_grpc.wire.speech.request import FORMAT_NAME, SpeechBody


class SpeechTokens(Struct):
    """Usage in the last event."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class SpeechEvent(Struct, kw_only=True):
    """Event of a stream: `speech.audio.delta` with audio in base64, or `speech.audio.done`."""

    type: str
    audio: str | None = None
    usage: SpeechTokens | None = None


BODY_TYPES = {FORMAT_NAME: BodyTypes(SpeechBody, bytes, event=SpeechEvent)}
