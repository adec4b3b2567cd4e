"""Cache keys: digests of cacheable requests. Requests with the same key have interchangeable responses."""

import hashlib
from collections.abc import Iterable
from copy import deepcopy
from typing import assert_never

import msgspec

from umg_grpc.operations.canonical_message_unions import CanonicalRequest
from umg_grpc.v1 import pb
from umg_grpc.wire import stores_by_default
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.model_quirks import has_search_option

STREAM_MEMBER = "stream"  # left out of the body, since the operation already distinguishes streams

# Fields that refer to content outside the request, which may change between two calls.
REFERENCE_FIELDS = ("previous_response_id", "conversation_id", "cached_content")


def key_of(
    owner: str, operation: str, ways: Iterable[str], request: CanonicalRequest, notes: RequestNotes = NO_NOTES
) -> str | None:
    """Return the key under which the response to a request is cached, or None if it must not be cached.

    Two keys are equal if and only if owner, operation, `ways` and request (ignoring JSON key order) are equal.
    `owner`: id of the caller's key. `operation`: path of the gRPC method. `ways`: the model's id and the channels and
    provider models that serve it, since the config may change them. `notes`: facts about the decoded body; with fields
    unknown to the gateway there is no key for a text.

    Responses to embedding and rerank requests are always cacheable. A response with images is if the request has a
    seed, contains all its input images, and requests bytes. A response with text is if the caller makes it
    deterministic, by temperature 0 or a seed, and the request contains all its input: no earlier response, no tool that
    the provider runs, no URL or file id. Takes milliseconds for a megabyte.
    """
    if not _is_deterministic(request) or notes.indispensable:
        return None
    try:
        relevant = _relevant_content(request)
    except (ValueError, RecursionError):  # JSON that we cannot read, although the provider may
        return None
    digest = hashlib.sha256()
    for piece in (*map(str.encode, (owner, operation, *ways)), relevant):
        digest.update(len(piece).to_bytes(8, "big"))
        digest.update(piece)
    return digest.hexdigest()


def _relevant_content(request: CanonicalRequest) -> bytes:
    relevant = deepcopy(request)
    if relevant.HasField("source"):
        source, body = request.source, _normalised(request.source.body)
        relevant.source.CopyFrom(pb.SourceDocument(format=source.format, headers=source.headers, body=body))
    return relevant.SerializeToString(deterministic=True)


def _normalised(body: bytes) -> bytes:
    members = msgspec.json.decode(body, type=dict[str, object])
    members.pop(STREAM_MEMBER, None)
    return msgspec.json.encode(members, order="sorted")


def _is_deterministic(request: CanonicalRequest) -> bool:
    if isinstance(request, pb.GenerateImageRequest):
        return _is_deterministic_image(request)
    if not isinstance(request, pb.GenerateRequest):
        return True
    source = request.source
    if not (request.HasField("seed") or (request.HasField("temperature") and request.temperature == 0)):
        return False
    if request.candidate_count > 1 or any(kind != "text" for kind in request.output_modalities):
        return False
    if request.store if request.HasField("store") else stores_by_default(source.format):
        return False
    if request.HasField("thread"):
        return False
    if any(getattr(request, field) for field in REFERENCE_FIELDS) or request.HasField("prompt_template"):
        return False
    if has_search_option(request) or not all(map(_is_run_by_caller, request.tools)):
        return False
    return all(map(_is_self_contained, request.instructions)) and all(
        _is_self_contained(part) for message in request.messages for part in message.parts
    )


def _is_deterministic_image(request: pb.GenerateImageRequest) -> bool:
    """Return whether a request leads to the same images each time: it has a seed and contains all input images."""
    parts = [part for turn in request.turns for part in turn.parts]
    images = [*request.inputs, *(part.image for part in parts if part.HasField("image"))]
    if request.HasField("mask"):
        images.append(request.mask)
    has_bytes = request.response_format == pb.IMAGE_RESPONSE_FORMAT_B64_JSON
    return request.HasField("seed") and has_bytes and all(image.HasField("data") for image in images)


def _is_run_by_caller(tool: pb.Tool) -> bool:
    """Return whether the caller runs the tool. The result of a provider's tool may differ in the next call."""
    return tool.HasField("function") or tool.HasField("custom")


def _is_self_contained(part: pb.Part) -> bool:
    """Return whether a part of a message contains all its content, not a URL or an id of content elsewhere."""
    match part.WhichOneof("kind"):
        case "media":
            return part.media.HasField("data") or (
                part.media.HasField("blocks") and all(map(_is_self_contained, part.media.blocks.parts))
            )
        case "tool_result":
            return all(map(_is_self_contained, part.tool_result.parts))
        case "opaque" | None:  # its content is not known, so it may refer to anything
            return False
        case "text" | "reasoning" | "tool_call" | "server_tool_call" | "server_tool_result" | "refusal" | "compaction":
            return True
        case unhandled:
            assert_never(unhandled)
