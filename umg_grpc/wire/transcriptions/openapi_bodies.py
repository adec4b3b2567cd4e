"""Types of the bodies of transcriptions and translations, for the OpenAPI document."""

from msgspec import Struct, field

from umg_grpc.wire.openapi_schemas.body_types import BodyTypes
from umg_grpc.wire.openapi_schemas.struct_schemas import File
from umg_grpc.wire.transcriptions.request import FORMAT_NAME, TRANSLATIONS_NAME


class TranslationForm(Struct, kw_only=True):
    """Form of `POST /v1/audio/translations`."""

    file: File
    model: str
    prompt: str | None = None
    response_format: str | None = None
    temperature: float | None = None


class TranscriptionForm(TranslationForm, kw_only=True):
    """Form of `POST /v1/audio/transcriptions`."""

    language: str | None = None
    stream: bool | None = None
    chunking_strategy: str | None = None
    timestamp_granularities: list[str] | None = field(default=None, name="timestamp_granularities[]")
    include: list[str] | None = field(default=None, name="include[]")
    known_speaker_names: list[str] | None = field(default=None, name="known_speaker_names[]")
    known_speaker_references: list[str] | None = field(default=None, name="known_speaker_references[]")


class Transcription(Struct):
    """Response of the form `json`; other forms are text, subtitles, or have more members."""

    text: str


class TranscriptionEvent(Struct, kw_only=True):
    """Event of a stream: `transcript.text.delta`, `transcript.text.segment` or `transcript.text.done`."""

    type: str
    delta: str | None = None
    text: str | None = None


BODY_TYPES = {
    FORMAT_NAME: BodyTypes(TranscriptionForm, Transcription, event=TranscriptionEvent, form=TranscriptionForm),
    TRANSLATIONS_NAME: BodyTypes(TranslationForm, Transcription, form=TranslationForm),
}
