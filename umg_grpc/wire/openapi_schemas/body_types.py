"""Types of the request bodies, responses and stream events of each wire format, from which the OpenAPI document
derives its JSON schemas. Bodies of video tasks are built from the field tables of the decoders.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from msgspec import Raw, Struct, defstruct

from umg_grpc.wire import TEXT_FACES
from umg_grpc.wire.chat.schema import ChatRequest
from umg_grpc.wire.cohere.schema import ChatRequest as CohereRequest
from umg_grpc.wire.core.json_decoding import NonEmpty, Whole
from umg_grpc.wire.images.multipart_requests import FORM_FIELDS
from umg_grpc.wire.images.schema import ImageBody
from umg_grpc.wire.messages.schema import CountRequest, MessagesRequest
from umg_grpc.wire.native.schema import GenerateBody
from umg_grpc.wire.ollama import schema as ollama
from umg_grpc.wire.openapi_schemas import media_response_types as media
from umg_grpc.wire.openapi_schemas import text_response_types as text
from umg_grpc.wire.openapi_schemas.encoded_bodies import EncodedBody
from umg_grpc.wire.openapi_schemas.struct_schemas import File
from umg_grpc.wire.responses.schema import Prompting, ResponsesRequest
from umg_grpc.wire.video import (
    submission_body_reader,
    unified_caller_api,
    vid_d_caller_api,
    vid_e_3_caller_api,
    vid_e_v1_caller_api,
    vid_f_caller_api,
    vid_g_caller_api,
    video_object_caller_api,
)
from umg_grpc.wire.video.content_array_items import ITEM_KINDS
from umg_grpc.wire.video.openapi_bodies import created_task


@dataclass(frozen=True)
class BodyTypes:
    """Types of the HTTP bodies of one operation in one wire format, for the OpenAPI document."""

    request: type[Struct]
    response: object
    event: type[Struct] | None = None
    """Type of the JSON `data` of one event of a stream; None for an operation without a stream."""
    form: type[Struct] | None = None
    """Type of the fields of a `multipart/form-data` request body; None for an operation that accepts none."""


class ImageUrl(Struct):
    """Address of a medium (image, video or audio): an http(s) URL or a data URL."""

    url: NonEmpty


ContentItem = defstruct(
    "ContentItem",
    [
        ("type", Literal["text", "image_url", "video_url", "audio_url"]),
        ("text", str | None, None),
        *((kind, ImageUrl | None, None) for kind in ITEM_KINDS),
        ("role", str | None, None),
    ],
    namespace={
        "__doc__": "Text, image, video or audio of a prompt. The role of a medium is `first_frame`, for example."
    },
)
_Field = tuple[str, object, object]
_KINDS: Mapping[type, object] = {
    submission_body_reader.WholeNumber: Whole,
    submission_body_reader.Seconds: str | int | float,
    submission_body_reader.JsonText: Raw,
}
_Images = str | list[str]


def _fields(table: submission_body_reader.Fields) -> list[_Field]:
    return [(name, _optional(_KINDS.get(member.kind, member.kind)), None) for name, member in table.items()]


def _images(names: tuple[str, ...]) -> list[_Field]:
    return [(name, _optional(_Images), None) for name in names]


def _optional(kind: object) -> object:
    return kind if kind is Raw else kind | None  # type: ignore[operator]  # types and unions


def _struct(name: str, doc: str, required: tuple[tuple[str, object], ...], optional: list[_Field]) -> type[Struct]:
    known = {field: (field, kind, default) for field, kind, default in optional}
    return defstruct(name, [*required, *known.values()], namespace={"__doc__": doc}, kw_only=True)


def _as_form(body: type[Struct], names: tuple[str, ...]) -> type[Struct]:
    """Return the type of a `multipart/form-data` body: a JSON body's fields except `metadata`. `names`: file fields."""
    required = tuple((name, body.__annotations__[name]) for name in ("model",))
    others: list[_Field] = [
        (name, File | str if name in names else kind, None)
        for name, kind in body.__annotations__.items()
        if name not in ("model", "metadata")
    ]
    return _struct(f"{body.__name__}Form", f"{body.__doc__} As a form.", required, others)


_MODEL = (("model", NonEmpty),)
_CALLBACK: list[_Field] = [("callback_url", str | None, None)]
_EXTERNAL: list[_Field] = [*_CALLBACK, ("external_task_id", str | None, None)]
_CONTENT: list[_Field] = [("content", list[ContentItem] | None, None)]  # type: ignore[valid-type]  # made from a table
_METADATA: list[_Field] = [("metadata", dict[str, Raw] | None, None)]

UnifiedBody = _struct(
    "UnifiedVideo",
    "New task of the unified entry. `metadata` takes the same fields and those of the model's family.",
    _MODEL,
    [
        *_fields(unified_caller_api.BODY_FIELDS),
        *_images((*unified_caller_api.IMAGE_FIELDS, "lastFrame")),
        (unified_caller_api.AUDIO_FIELD, str | None, None),
        *_METADATA,
        *_EXTERNAL,
    ],
)
ObjectBody = _struct(
    "NewVideo",
    "New video.",
    _MODEL,
    [*_fields(video_object_caller_api.BODY_FIELDS), *_images(video_object_caller_api.IMAGE_FIELDS)],
)
RemixBody = _struct("Remix", "Change of a finished video.", (("prompt", NonEmpty),), [("model", str | None, None)])
BodyD = _struct(
    "NewTaskD", "New task of Entry D.", _MODEL, [*_CONTENT, *_fields(vid_d_caller_api.BODY_FIELDS), *_CALLBACK]
)
BodyE1 = _struct(
    "NewTaskE1",
    "New task of Entry E. `metadata` takes the same fields.",
    _MODEL,
    [*_fields(vid_e_v1_caller_api.BODY_FIELDS), *_images(vid_e_v1_caller_api.IMAGE_FIELDS), *_METADATA, *_EXTERNAL],
)
Settings = _struct("Settings", "Member `settings`.", (), _fields(vid_e_3_caller_api.SETTING_FIELDS))
TaskOptions = _struct("Options", "Member `options`.", (), _EXTERNAL)
BodyE3 = _struct(
    "NewTaskE3",
    "New task of Entry E 3.0, whose model is in the path.",
    (),
    [
        *_fields(vid_e_3_caller_api.BODY_FIELDS),
        ("settings", Settings | None, None),
        ("options", TaskOptions | None, None),
        *((name, Raw, None) for name in vid_e_3_caller_api.MEDIA_FIELDS),
    ],
)
BodyF = _struct(
    "NewTaskF",
    "New task of Entry F, or with `Action=CVSync2AsyncGetResult` the query of one, which has a `task_id`.",
    (),
    [
        ("req_key", str | None, None),
        ("task_id", str | None, None),
        *_fields(vid_f_caller_api.BODY_FIELDS),
        *_images(vid_f_caller_api.IMAGE_FIELDS),
    ],
)
BodyG = _struct("NewTaskG", "New task of Entry G.", _MODEL, [*_CONTENT, *_fields(vid_g_caller_api.BODY_FIELDS)])
ImageForm = _struct(
    "ImageForm",
    "Images as files, or as texts as in a JSON body.",
    _MODEL,
    [
        *((name, ImageBody.__annotations__[name], None) for name in FORM_FIELDS if name != "model"),
        ("image", File | list[File] | str, None),
        ("mask", File | str, None),
    ],
)

BODY_TYPES: Mapping[str, BodyTypes] = MappingProxyType(
    {
        "chat": BodyTypes(ChatRequest, text.ChatCompletion, text.ChatChunk),
        "responses": BodyTypes(ResponsesRequest, text.Response, text.ResponseEvent),
        "messages": BodyTypes(MessagesRequest, text.Message, text.MessageEvent),
        "native": BodyTypes(GenerateBody, text.NativeResponse, text.NativeResponse),
        "ollama_chat": BodyTypes(ollama.ChatBody, text.OllamaChat, text.OllamaChat),
        "ollama_generate": BodyTypes(ollama.GenerateBody, text.OllamaGenerated, text.OllamaGenerated),
        "cohere": BodyTypes(CohereRequest, text.CohereResponse, text.CohereEvent),
        "images": BodyTypes(ImageBody, media.DocumentedImages | media.Images, media.ImageEvent),
        "image_edits": BodyTypes(ImageBody, media.Images, media.ImageEvent, ImageForm),
        "image_variations": BodyTypes(ImageBody, media.Images, media.ImageEvent, ImageForm),
        "video": BodyTypes(
            UnifiedBody, created_task("video"), form=_as_form(UnifiedBody, unified_caller_api.IMAGE_FIELDS)
        ),
        "video_object": BodyTypes(
            ObjectBody, created_task("video_object"), form=_as_form(ObjectBody, video_object_caller_api.IMAGE_FIELDS)
        ),
        "video_d": BodyTypes(BodyD, created_task("video_d")),
        "video_e_v1": BodyTypes(
            BodyE1, created_task("video_e_v1"), form=_as_form(BodyE1, vid_e_v1_caller_api.IMAGE_FIELDS)
        ),
        "video_e_3": BodyTypes(BodyE3, created_task("video_e_3")),
        "video_f": BodyTypes(BodyF, created_task("video_f")),
        "video_g": BodyTypes(BodyG, created_task("video_g")),
    }
)
"""Name of a wire format -> types of its main operation: text generation, image generation or video submission.
Operations with a single response have separate tables, which their rows name.
"""

COMPACTION_BODIES: Mapping[str, BodyTypes] = MappingProxyType(
    {"responses": BodyTypes(ResponsesRequest, text.Compacted)}
)
"""Name of a text format -> types of its operation that compacts a conversation."""

_COUNTED: Mapping[str, type[Struct]] = MappingProxyType(
    {"responses": Prompting, "messages": CountRequest, "native": GenerateBody}
)


def _tokens(face: str, encode: Callable[[int, int | None], bytes]) -> EncodedBody:
    description = f"Number of tokens in the format `{face}`."
    return EncodedBody(f"{face}.Tokens", description, lambda: [encode(1, None), encode(1, 2)])


COUNT_BODIES: Mapping[str, BodyTypes] = MappingProxyType(
    {
        name: BodyTypes(_COUNTED[name], _tokens(name, codec.encode_count))
        for name, codec in TEXT_FACES.items()
        if codec.encode_count is not None
    }
)
"""Name of a text format -> types of its token counting operation."""

MODEL_BODIES: Mapping[str, type[Struct]] = MappingProxyType({"ollama_models": ollama.ShowBody})
"""Name of a model list's format -> type of the body that names one model, for formats without the model in the path."""
