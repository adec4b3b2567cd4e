"""Transcription requests: decoding of a caller's form, and encoding of the canonical request as a provider's form."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import msgspec
from msgspec import Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import audio_ending
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.json_decoding import JsonObject, invalid, missing, parse
from umg_grpc.wire.core.multipart_forms import FilePart, FormPart, encode_form
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest, RequestNotes
from umg_grpc.wire.text_format_interface import UpstreamRequest

FORMAT_NAME, TRANSLATIONS_NAME = "transcriptions", "translations"
FILE_FIELD, STREAM_FIELD, FORMAT_FIELD = "file", "stream", "response_format"
JSON_FORMAT, VERBOSE_FORMAT, DIARIZED_FORMAT, TEXT_FORMAT = "json", "verbose_json", "diarized_json", "text"
SUBTITLE_FORMATS = frozenset({"srt", "vtt"})
JSON_FORMATS = frozenset({JSON_FORMAT, VERBOSE_FORMAT, DIARIZED_FORMAT})
TEXT_FIELDS = {"model": "model", "language": "language", "prompt": "prompt", FORMAT_FIELD: "response_format"}
LIST_FIELDS = {
    "timestamp_granularities": "timestamp_granularities",
    "include": "include",
    "known_speaker_names": "known_speaker_names",
    "known_speaker_references": "known_speaker_references",
}
"""List field of a form, whose name may end in `[]` there -> field of the canonical request."""
OTHER_FIELDS = frozenset({FILE_FIELD, STREAM_FIELD, "temperature", "chunking_strategy"})
SWITCH_VALUES = {"true": True, "false": False}
GRANULARITIES_FIELD, SEGMENT_GRANULARITY = "timestamp_granularities", "segment"
DIARIZE_FIELD = "diarize"
"""Field by which models that state times (`ModelFormats.states_times`) name the speakers."""
wire_path = wire_paths([(r"^audio(\..*)?$", FILE_FIELD), (r"^translate$", "")])
Form = dict[str, str | list[str]]


class ModelFormats(Struct):
    """Forms of the text (`response_format`) that a vendor's models support, for models that do not support all."""

    models: re.Pattern[str]
    formats: frozenset[str]
    source: str
    states_times: bool = False
    """Whether `timestamp_granularities` adds times to `json`, the only form, so that the other forms can be derived."""


MODEL_FORMATS = (
    ModelFormats(
        re.compile(r"(?:.*/)?gpt-4o-transcribe-diarize"),
        frozenset({JSON_FORMAT, TEXT_FORMAT, DIARIZED_FORMAT}),
        "openai 3.57.0, TranscriptionCreateParams.response_format",
    ),
    ModelFormats(
        re.compile(r"(?:.*/)?gpt-(?:.*-)?transcribe"),
        frozenset({JSON_FORMAT}),
        "openai 3.57.0, TranscriptionCreateParams.response_format",
    ),
    ModelFormats(
        re.compile(r"openai/whisper-"),
        frozenset({JSON_FORMAT, VERBOSE_FORMAT}),
        "together 3.1.1, audio.TranscriptionCreateParams.response_format; openrouter.ai, create transcription; "
        "DeepInfra has both of them, too",
    ),
    ModelFormats(
        re.compile(r"voxtral-"),
        frozenset({JSON_FORMAT}),
        "mistralai 3.7.0, AudioTranscriptionRequest: timestamp_granularities, and no response_format",
        states_times=True,
    ),
    ModelFormats(
        re.compile(r"(?:FunAudioLLM/SenseVoice|TeleAI/)"),
        frozenset({JSON_FORMAT}),
        "docs.siliconflow.cn, create audio transcriptions: file and model, the response is {text}",
    ),
    ModelFormats(
        re.compile(r"(?:.*/)?(?:distil-)?whisper-large-v3"),
        frozenset({JSON_FORMAT, TEXT_FORMAT, VERBOSE_FORMAT}),
        "groq 1.x, audio.TranscriptionCreateParams.response_format: json, text, verbose_json",
    ),
)
"""The first row whose pattern begins the provider's model id applies; a model without a row may have all forms."""


# --- caller -> canonical


def decode_form(parts: Iterable[FormPart], *, name: str = FORMAT_NAME) -> DecodedRequest[pb.TranscribeRequest]:
    """Decode a form: its fields become the source document, its file the canonical `audio`. `name`: the caller's
    format. Raise UmgError: MALFORMED_BODY, MISSING_FIELD or INVALID_FIELD.
    """
    form, file = Form(), None
    for part in parts:
        if part.name == FILE_FIELD:
            if not part.is_file:
                raise invalid(FILE_FIELD, "send the audio as a file with a name")
            if file is not None:
                raise invalid(FILE_FIELD, "it is there more than once; send one")
            file = part
        elif part.is_file:
            raise invalid(part.name, f"only `{FILE_FIELD}` is a file; send a text")
        else:
            before = form.get(part.name)
            is_list = part.name.endswith("[]") or before is not None
            listed = [] if before is None else before if isinstance(before, list) else [before]
            form[part.name] = [*listed, part.text] if is_list else part.text
    if file is None:
        raise missing(FILE_FIELD)
    if not file.data:
        raise invalid(FILE_FIELD, "the file is empty; send audio")
    decoded = decode_request(msgspec.json.encode(form), {}, name=name)
    audio = pb.AudioFile(data=file.data, file_name=file.file_name or "", content_type=file.content_type)
    decoded.canonical.audio.CopyFrom(audio)
    return decoded


def decode_request(
    body: bytes, headers: Mapping[str, str], model: str = "", *, name: str = FORMAT_NAME
) -> DecodedRequest[pb.TranscribeRequest]:
    """Decode the fields of a form, given as a JSON object of texts and lists of texts; the file is separate. `headers`
    and `model` have no effect. Raise UmgError: MALFORMED_BODY, MISSING_FIELD or INVALID_FIELD.
    """
    form, uncarried = parse(Form, body), list[str]()
    request = pb.TranscribeRequest(translate=name == TRANSLATIONS_NAME)
    request.source.format, request.source.body = name, body
    for field, value in form.items():
        bare = field.removesuffix("[]")
        if bare in LIST_FIELDS:
            getattr(request, LIST_FIELDS[bare]).extend([value] if isinstance(value, str) else value)
        elif field.startswith("chunking_strategy["):
            continue  # read below
        elif isinstance(value, list) and (bare in TEXT_FIELDS or bare in OTHER_FIELDS):
            raise invalid(field, "it is there more than once; send one")
        elif field in TEXT_FIELDS:
            setattr(request, TEXT_FIELDS[field], value)
        elif field not in OTHER_FIELDS:
            uncarried.append(field)
    if not request.model:
        raise missing("model")
    if "temperature" in form:
        request.temperature = _number(str(form["temperature"]))
    if str(form.get(STREAM_FIELD, "false")).lower() not in SWITCH_VALUES:
        raise invalid(STREAM_FIELD, "expected true or false")
    request.chunking_strategy = _chunking(form)
    return DecodedRequest(request, RequestNotes(uncarried=uncarried))


def wants_stream(body: bytes) -> bool:
    """Return whether the fields of a form request a stream."""
    return SWITCH_VALUES[str(msgspec.json.decode(body, type=Form).get(STREAM_FIELD, "false")).lower()]


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise invalid("temperature", "expected a number")
    return number


def _chunking(form: Form) -> str:
    members: JsonObject = {
        name.removeprefix("chunking_strategy[").removesuffix("]"): value
        for name, value in form.items()
        if name.startswith("chunking_strategy[")
    }
    return msgspec.json.encode(members).decode() if members else str(form.get("chunking_strategy", ""))


# --- canonical -> provider


def format_of(request: pb.TranscribeRequest) -> str:
    """Return the form of the text that a request selects."""
    return request.response_format or JSON_FORMAT


def sent_format(wanted: str, model: str, row: ModelFormats | None) -> str:
    """Return the form of the text to request from the provider's `model`, so that the form `wanted` can be derived.
    `row`: forms that the model has, None if it may have all. Raise UmgError(UNTRANSLATABLE) for subtitles from a model
    without times.
    """
    if row is None or wanted in row.formats:
        return wanted
    if row.states_times:
        return JSON_FORMAT
    known = row.formats
    if wanted in SUBTITLE_FORMATS and VERBOSE_FORMAT not in known and DIARIZED_FORMAT not in known:
        problem = f"{model} states no times; choose {' or '.join(sorted(known | {TEXT_FORMAT}))}, or another model"
        raise untranslatable("response_format", problem)
    if wanted in SUBTITLE_FORMATS:
        return VERBOSE_FORMAT if VERBOSE_FORMAT in known else DIARIZED_FORMAT
    return JSON_FORMAT if wanted == TEXT_FORMAT else wanted  # the provider has the better error for the others


def encode_request(request: pb.TranscribeRequest, model: str, notes: RequestNotes = NO_NOTES) -> UpstreamRequest:
    """Encode a request as a form with the file as its last part. The fields of a caller's form are kept. Raise
    UmgError(UNTRANSLATABLE) for a form of the text that cannot be derived.
    """
    own = request.source.format in (FORMAT_NAME, TRANSLATIONS_NAME)
    form = msgspec.json.decode(request.source.body, type=Form) if own else _form_of(request)
    _select_format(form, format_of(request), model)
    form.pop(STREAM_FIELD, None)
    if notes.is_streamed and not request.translate:
        form[STREAM_FIELD] = "true"
    form["model"] = model
    audio = request.audio
    kind = audio.content_type or "application/octet-stream"
    # providers recognize the format by the end of the name (openai 3.57.0, `TranscriptionCreateParams.file`)
    file = FilePart(FILE_FIELD, audio.file_name or f"audio{audio_ending(audio.data)}", kind, audio.data)
    body, content_type = encode_form(_pairs(form), [file])
    path = "/audio/translations" if request.translate else "/audio/transcriptions"
    return UpstreamRequest(path, body, {"Content-Type": content_type}, Report())


def _select_format(form: Form, wanted: str, model: str) -> None:
    """Set the fields that select the form of the text, in place. Subtitles that are derived from JSON need segments."""
    row = next((row for row in MODEL_FORMATS if row.models.match(model)), None)
    sent = sent_format(wanted, model, row)
    if sent != wanted:
        form[FORMAT_FIELD] = sent
    if row is None or not row.states_times:
        if wanted in SUBTITLE_FORMATS and sent == VERBOSE_FORMAT:
            form.pop(GRANULARITIES_FIELD, None)
            form[f"{GRANULARITIES_FIELD}[]"] = [SEGMENT_GRANULARITY]
        return
    form.pop(FORMAT_FIELD, None)
    listed = form.pop(f"{GRANULARITIES_FIELD}[]", None)
    if wanted == DIARIZED_FORMAT:
        form[DIARIZE_FIELD] = "true"
    if wanted in SUBTITLE_FORMATS or wanted in (VERBOSE_FORMAT, DIARIZED_FORMAT):
        form[GRANULARITIES_FIELD] = SEGMENT_GRANULARITY
    elif listed is not None:
        form[GRANULARITIES_FIELD] = listed


def _form_of(request: pb.TranscribeRequest) -> Form:
    form: Form = {name: value for name, field in TEXT_FIELDS.items() if (value := getattr(request, field))}
    form |= {f"{name}[]": list(values) for name, field in LIST_FIELDS.items() if (values := getattr(request, field))}
    if request.HasField("temperature"):
        form["temperature"] = f"{request.temperature:g}"
    if (chunking := request.chunking_strategy).startswith("{"):
        members = _members(chunking)
        form |= {f"chunking_strategy[{name}]": str(value) for name, value in members.items()}
    elif chunking:
        form["chunking_strategy"] = chunking
    return form


def _members(chunking: str) -> dict[str, str | int | float]:
    try:
        return msgspec.json.decode(chunking, type=dict[str, str | int | float])
    except ValueError:
        raise invalid("chunking_strategy", "expected `auto` or a JSON object of texts and numbers") from None


def _pairs(form: Form) -> Iterator[tuple[str, str]]:
    for name, value in form.items():
        yield from ((name, each) for each in ([value] if isinstance(value, str) else value))


decode_translation = partial(decode_request, name=TRANSLATIONS_NAME)
decode_translation_form = partial(decode_form, name=TRANSLATIONS_NAME)
