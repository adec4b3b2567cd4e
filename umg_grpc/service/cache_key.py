"""Which requests have one answer, so that it may be given again, and what tells them apart."""

import hashlib
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from umg_grpc.v1 import pb

Request = TypeVar("Request", pb.GenerateRequest, pb.EmbedRequest, pb.RerankRequest)

STREAM = "stream"  # how the answer travels is the operation's affair

# What stands elsewhere, and may say something else the next time.
NAMED_ONLY = ("previous_response_id", "conversation_id", "cached_content")


def key_of(owner: str, operation: str, ways: Iterable[str], request: Request) -> str | None:
    """The same for two requests of one owner exactly where they ask for the same, in any order of JSON's keys; None for
    a request whose answer is not to be kept. `operation`: what is made of it. `ways`: what the model's id stands for
    now, and where it leads: the config may change both.

    Embeddings and rankings have one answer. Text has where its caller said so, by temperature 0 or a seed, and where
    nothing but the request decides it: no earlier response, no tool that the provider runs, nothing that is only named
    (a URL, a file). It takes milliseconds for a megabyte.
    """
    if not _has_one_answer(request):
        return None
    try:
        asked = _asked(request)
    except (ValueError, RecursionError):  # no JSON that we read: the provider may
        return None
    digest = hashlib.sha256()
    for piece in (*map(str.encode, (owner, operation, *ways)), asked):
        digest.update(len(piece).to_bytes(8, "big"))
        digest.update(piece)
    return digest.hexdigest()


def _asked(request: Request) -> bytes:
    """All of it that the answer depends on: the canonical fields, and what else the caller's body says. Raises
    ValueError or RecursionError.
    """
    asked = type(request)()
    asked.CopyFrom(request)
    if asked.HasField("source"):
        source, body = request.source, _normalised(request.source.body)
        asked.source.CopyFrom(pb.SourceDocument(format=source.format, headers=source.headers, body=body))
    return asked.SerializeToString(deterministic=True)


def _normalised(body: bytes) -> bytes:
    members = msgspec.json.decode(body, type=dict[str, object])
    members.pop(STREAM, None)
    return msgspec.json.encode(members, order="sorted")


def _has_one_answer(request: pb.GenerateRequest | pb.EmbedRequest | pb.RerankRequest) -> bool:
    if not isinstance(request, pb.GenerateRequest):
        return True
    source = request.source
    if not (request.HasField("seed") or (request.HasField("temperature") and request.temperature == 0)):
        return False
    if request.candidate_count > 1 or any(kind != "text" for kind in request.output_modalities):
        return False
    if request.store if request.HasField("store") else source.format == "responses":
        return False
    if request.HasField("thread"):
        return False
    if any(getattr(request, field) for field in NAMED_ONLY) or request.HasField("prompt_template"):
        return False
    if source.indispensable_fields or _searches(request) or not all(map(_is_callers, request.tools)):
        return False
    return all(map(_is_here, request.instructions)) and all(
        _is_here(part) for message in request.messages for part in message.parts
    )


def _searches(request: pb.GenerateRequest) -> bool:
    return request.HasField("search") and request.search.mode != "off"


def _is_callers(tool: pb.Tool) -> bool:
    """Whether the caller runs it: what a provider's own tool finds may be another the next time."""
    return tool.HasField("function") or tool.HasField("custom")


def _is_here(part: pb.Part) -> bool:
    """Whether the part holds all that it says, and names nothing that stands elsewhere."""
    match part.WhichOneof("kind"):
        case "media":
            return part.media.HasField("data") or (
                part.media.HasField("blocks") and all(map(_is_here, part.media.blocks.parts))
            )
        case "tool_result":
            return all(map(_is_here, part.tool_result.parts))
        case "opaque" | None:  # which may name anything
            return False
        case _:
            return True
