"""Native embedding requests: decoding of a caller's body, and encoding of the canonical request for a provider."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Raw

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import (
    ABSENT_MEMBER,
    JsonObject,
    check_utf8,
    invalid,
    is_present,
    missing,
    parse,
    whole,
)
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest, RequestNotes
from umg_grpc.wire.native.model_paths import MODEL_PREFIX, call_path, path_model
from umg_grpc.wire.native.proto_json_normalization import Notes, read
from umg_grpc.wire.native_embeddings.schema import BatchBody, Config, Content, EmbedBody
from umg_grpc.wire.shared_embedding_checks import without_nulls
from umg_grpc.wire.text_format_interface import UpstreamRequest

SINGLE_FORMAT, BATCH_FORMAT = "native_embedding", "native_embeddings"
"""Names of the two formats, for one content and for a batch of contents."""
SINGLE_VERB, BATCH_VERB = ":embedContent", ":batchEmbedContents"

PART_SEPARATOR = "\n"  # between the parts of one content
UNSPECIFIED_TASK = "TASK_TYPE_UNSPECIFIED"
LENGTH_MEMBER = "outputDimensionality"
CONFIG_MEMBER = "embedContentConfig"

UNCARRIED_OPTIONS = {
    "mime_type": "mimeType",
    "auto_truncate": "autoTruncate",
    "document_ocr": "documentOcr",
    "audio_track_extraction": "audioTrackExtraction",
}
"""Options of `embedContentConfig` without a canonical form: field of the struct -> name in the body."""


# --- caller -> canonical


class _Body(NamedTuple):
    """Inputs and model ids in a body, whether it is for one content or for a batch."""

    items: Sequence[EmbedBody]
    named: Sequence[tuple[str, str]]  # (path, model) for each model in the body


def _read(face: str, body: bytes, notes: Notes) -> _Body:
    if face == SINGLE_FORMAT:
        single = read(EmbedBody, body, notes)
        items, models = [single], [("model", single.model)]
    else:
        batch = read(BatchBody, body, notes)
        items, models = batch.requests, [("model", batch.model)]
        models += [(f"requests[{position}].model", item.model) for position, item in enumerate(items) if item.model]
    return _Body(items, [(at, model.removeprefix(MODEL_PREFIX)) for at, model in models if model])


def decode_request(
    face: str, body: bytes, headers: Mapping[str, str], model: str = ""
) -> DecodedRequest[pb.EmbedRequest]:
    """Decode the JSON body of an embedding request. `face`: its format, for one content or a batch; `model`: id in the
    path, which the body may repeat. Raise UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD, or UNSUPPORTED_FIELD
    for content other than text.
    """
    notes, request, uncarried = Notes(), pb.EmbedRequest(), list[str]()
    try:
        parsed = _read(face, check_utf8(body), notes)
        first, repeated = next(iter(parsed.named), ("model", ""))
        for at, named in parsed.named:
            if named != repeated:
                conflict = f"it names {named[:64]!r}, another place {repeated[:64]!r}"
                raise invalid(at, f"{conflict}; leave it out of the body, the path has it")
        request.model = path_model(model, repeated, first)
        _decode_items(parsed.items, "" if face == SINGLE_FORMAT else "requests[{}].", request, notes, uncarried)
    except UmgError as error:
        raise notes.with_caller_path(error) from None
    source = request.source
    source.format, source.body = face, body
    uncarried.extend(field.path for field in notes.unknown)
    return DecodedRequest(request, RequestNotes(uncarried))


def _decode_items(
    items: Sequence[EmbedBody], path: str, request: pb.EmbedRequest, notes: Notes, uncarried: list[str]
) -> None:
    task_types, lengths = list[str | None](), list[int | None]()
    for index, item in enumerate(items):
        at, target = path.format(index), request.inputs.add()
        target.text = _text(item.content, at)
        title, task_type, length = item.title, item.task_type, item.output_dimensionality
        length = None if length is None else whole(length, f"{at}{LENGTH_MEMBER}")
        if (config := item.embed_content_config) is not None:  # no document shows which one wins; we take the newer
            title, task_type = config.title or title, config.task_type or task_type
            length = whole(config.output_dimensionality, f"{at}{CONFIG_MEMBER}.{LENGTH_MEMBER}") or length
            _note_uncarried(config, at, notes, uncarried)
        if title is not None:
            target.title = title
        task_type = task_type.upper() if task_type else UNSPECIFIED_TASK  # an enum may be written in any case
        task_types.append(None if task_type == UNSPECIFIED_TASK else task_type)
        lengths.append(length)
    _set(request, "task_type", task_types)
    _set(request, "dimensions", lengths)


def _note_uncarried(config: Config, at: str, notes: Notes, uncarried: list[str]) -> None:
    """Add an input's options without a canonical form to `uncarried`, each once, in the caller's spelling."""
    for field, name in UNCARRIED_OPTIONS.items():
        end = f"{notes.snake.get(CONFIG_MEMBER, CONFIG_MEMBER)}.{notes.snake.get(name, name)}"
        if is_present(getattr(config, field)) and not any(noted.endswith(end) for noted in uncarried):
            uncarried.append(f"{at}{end}")


def _text(content: Content | None, at: str) -> str:
    if content is None:
        raise missing(f"{at}content")
    if not content.parts:
        raise missing(f"{at}content.parts")
    for index, part in enumerate(content.parts):
        if part.text is None:
            field = f"{at}content.parts[{index}]"
            message = f"`{field}`: texts alone are embedded here; send parts that have a `text`"
            raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=field)
    text = PART_SEPARATOR.join([part.text for part in content.parts if part.text])
    if not text:
        raise invalid(f"{at}content.parts", "all its texts are empty; send one that is not")
    return text


def _set(request: pb.EmbedRequest, name: str, values: Sequence[str | int | None]) -> None:
    all_equal = values.count(values[0]) == len(values)
    for target, value in zip([request] if all_equal else request.inputs, values, strict=False):
        if value is not None:
            setattr(target, name, value)


# --- canonical -> provider


def encode_request(request: pb.EmbedRequest, model: str, notes: RequestNotes = NO_NOTES) -> UpstreamRequest:
    """Encode a call of a provider's `POST /models/{model}:batchEmbedContents`, or of `:embedContent` if the caller's
    body is forwarded. `notes`: facts about the caller's body. Raise UmgError(UNTRANSLATABLE) for token ids as input.
    """
    report, name = Report(), MODEL_PREFIX + model.removeprefix(MODEL_PREFIX)
    if request.source.format == SINGLE_FORMAT:
        return UpstreamRequest(call_path(model, SINGLE_VERB), _rebuild_single(request.source.body, name), {}, report)
    if request.source.format == BATCH_FORMAT:
        return UpstreamRequest(call_path(model, BATCH_VERB), _rebuild_batch(request.source.body, name), {}, report)
    notes.report_uncarried(report)
    if request.user:
        report.drop("user")
    items = [_encode_item(item, f"inputs[{position}]", request, name) for position, item in enumerate(request.inputs)]
    return UpstreamRequest(call_path(model, BATCH_VERB), msgspec.json.encode({"requests": items}), {}, report)


def _encode_item(item: pb.EmbeddingInput, at: str, request: pb.EmbedRequest, name: str) -> JsonObject:
    text = item.text
    if not text:
        raise untranslatable(f"{at}.tokens", "this model's provider accepts no tokens; send the text itself")
    fields: JsonObject = {"model": name, "content": {"parts": [{"text": text}]}}
    if task_type := item.task_type or request.task_type:
        fields["taskType"] = task_type
    if title := item.title:
        fields["title"] = title
    if dimensions := item.dimensions or request.dimensions:
        fields["outputDimensionality"] = dimensions
    return fields


def _rebuild_single(body: bytes, name: str) -> bytes:
    return msgspec.json.encode(_edited(parse(dict[str, Raw], body), name))


def _rebuild_batch(body: bytes, name: str) -> bytes:
    """Return a batch body with the provider's model id `name` in every input, which providers require."""
    fields = parse(dict[str, Raw], body)
    if "model" in fields:
        fields["model"] = Raw(msgspec.json.encode(name))
    raw = fields["requests"]
    items = parse(list[dict[str, Raw]], raw if bytes(raw).startswith(b"[") else b"[%b]" % bytes(raw))
    fields["requests"] = Raw(msgspec.json.encode([_edited(item | {"model": ABSENT_MEMBER}, name) for item in items]))
    return msgspec.json.encode(without_nulls(fields))


def _edited(fields: dict[str, Raw], name: str) -> dict[str, Raw]:
    if "model" in fields:
        fields["model"] = Raw(msgspec.json.encode(name))
    return without_nulls(fields)
