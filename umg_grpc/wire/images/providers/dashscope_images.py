"""Protocol of the image provider of family `imgD`: a synchronous call with messages, or a task if the model requires
one. Errors may have HTTP status 200. Images are returned only as URLs.
"""

import re
from functools import partial
from urllib.parse import quote

import msgspec
from msgspec import Raw, Struct

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.families.image_model_rules import family_row, has_images
from umg_grpc.knowledge.media_model_rules import media_model
from umg_grpc.knowledge.task_state_words import own_meaning
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, is_present
from umg_grpc.wire.core.lenient_number_reading import Count, count
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.error_classification import (
    BLOCKED_REASON,
    DEFAULT_TABLE,
    FAILED_REASON,
    ClassificationRow,
    ProviderError,
    Table,
)
from umg_grpc.wire.errors.provider_errors import (
    NO_RESPONSE,
    decode_error,
    from_provider,
    is_ok,
    read_response,
    unreadable,
)
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.images.provider_protocol_interface import ImageProtocol, ImageTasks
from umg_grpc.wire.images.providers.request_encoding import (
    FlatRequest,
    add_set,
    as_url,
    flatten,
    refuse_edits,
    report_others,
    size_with,
)
from umg_grpc.wire.images.providers.response_decoding import check_images, copy_size, is_text, set_further
from umg_grpc.wire.relay_task_responses import RelayedTask, read_relayed
from umg_grpc.wire.text_format_interface import UpstreamRequest

GENERATION_PATH = "/api/v1/services/aigc/multimodal-generation/generation"
SYNTHESIS_PATH = "/api/v1/services/aigc/text2image/image-synthesis"
TASK_GENERATION = "/api/v1/services/aigc/image-generation/generation"
"""Path of tasks with messages, for models whose row in the knowledge states it."""
TASKS_PATH = "/api/v1/tasks/"
PROTOCOL_NAME = "dashscope_images"
ASYNC_HEADERS = {"X-DashScope-Async": "enable"}
SUPPORTED_FIELDS = frozenset({"size", "negative_prompt", "prompt_extend", "watermark", "seed"})
IN_PARAMETERS = "parameters."


class Further(Struct):
    """Caller's body, of which only the member `parameters` is decoded."""

    parameters: dict[str, Raw] = {}


def encode_request(
    request: pb.GenerateImageRequest, model: str, stream: bool, notes: RequestNotes = NO_NOTES
) -> UpstreamRequest:
    """Encode an image request as a synchronous call: one user message with the images, then the text. `stream` is not
    used, as the provider has no streams. `notes`: facts about the caller's body. Raise UmgError(INVALID_FIELD,
    UNTRANSLATABLE) for a request that the provider cannot express.
    """
    report, flat = _prepared(request, notes)
    return UpstreamRequest(GENERATION_PATH, _with_messages(request, model, notes, flat, report), {}, report)


def _with_messages(
    request: pb.GenerateImageRequest, model: str, notes: RequestNotes, flat: FlatRequest, report: Report
) -> bytes:
    content: list[object] = [{"image": as_url(placed)} for placed in flat.images]
    if flat.prompt or not content:
        content.append({"text": flat.prompt})
    body = {
        "model": model,
        "input": {"messages": [{"role": "user", "content": content}]},
        "parameters": _parameters(request, notes, report, with_negative=True),
    }
    return msgspec.json.encode(body)


def encode_create(request: pb.GenerateImageRequest, model: str, notes: RequestNotes) -> UpstreamRequest | None:
    """Encode an image request as a call that creates a task. None for a request with input images unless the model has
    tasks with messages, which alone accept them. `notes`: facts about the caller's body.
    """
    if (row := media_model(PROTOCOL_NAME, model)) is not None and row.api == "messages":
        report, flat = _prepared(request, notes)
        return UpstreamRequest(
            TASK_GENERATION, _with_messages(request, model, notes, flat, report), ASYNC_HEADERS, report
        )
    if has_images(request):
        return None
    report, flat = _prepared(request, notes)
    texts: JsonObject = {"prompt": flat.prompt}
    add_set(texts, request, {"negative_prompt": "negative_prompt"})
    body = {"model": model, "input": texts, "parameters": _parameters(request, notes, report, with_negative=False)}
    return UpstreamRequest(SYNTHESIS_PATH, msgspec.json.encode(body), ASYNC_HEADERS, report)


def encode_query(task_id: str) -> UpstreamRequest:
    """Encode the call that queries the task with the provider's id `task_id`."""
    return UpstreamRequest(TASKS_PATH + quote(task_id, safe=""), b"", {}, Report(), method="GET")


def _prepared(request: pb.GenerateImageRequest, notes: RequestNotes) -> tuple[Report, FlatRequest]:
    refuse_edits(request)
    report = Report()
    flat = flatten(request, report)
    report_others(request, SUPPORTED_FIELDS, notes, report)
    return report, flat


def _parameters(
    request: pb.GenerateImageRequest, notes: RequestNotes, report: Report, *, with_negative: bool
) -> JsonObject:
    """Return the member `parameters` of a call. For neutral ids, the number of images, the watermark and (if the model
    has it) the expansion of the prompt are always sent, since defaults of the provider may change.
    """
    row = family_row(request.model, notes.model_family)
    is_open = row is None or row.is_open
    parameters: JsonObject = _further(request, notes, report) if is_open else {}
    add_set(parameters, request, {"n": "n", "watermark": "watermark", "prompt_extend": "prompt_extend"})
    if row is not None and not is_open:
        parameters.setdefault("n", 1)
        parameters.setdefault("watermark", row.default_watermark)
        if "prompt_extend" in row.fields:
            parameters.setdefault("prompt_extend", True)
    if request.HasField("size"):
        parameters["size"] = size_with("*", request.size)
    add_set(parameters, request, {"seed": "seed"})
    if with_negative:
        add_set(parameters, request, {"negative_prompt": "negative_prompt"})
    return parameters


def _further(request: pb.GenerateImageRequest, notes: RequestNotes, report: Report) -> JsonObject:
    """Return members of the caller's `parameters` that have no canonical field, and remove them from the report."""
    names = {path.removeprefix(IN_PARAMETERS) for path in notes.uncarried if path.startswith(IN_PARAMETERS)}
    if not names:
        return {}
    given = msgspec.json.decode(request.source.body, type=Further).parameters
    for name in names:
        report.forget(IN_PARAMETERS + name)
    return {name: raw for name, raw in given.items() if name in names}


# --- errors

MODERATED_CODES = re.compile(r"DataInspection|IPInfringement", re.IGNORECASE)
ACCOUNT_CODES = re.compile(r"Arrearage|AccessDenied|FreeTierOnly|InvalidApiKey")
NO_MODEL = re.compile(r"ModelNotFound|Model\.AccessDenied|Model\.NotFound")
ERROR_TABLE: Table = (
    ClassificationRow({400, 403, 422}, BLOCKED_REASON, Failure.CALLER, codes=MODERATED_CODES),
    ClassificationRow({400, 403, 404}, FAILED_REASON, Failure.DOWN, codes=ACCOUNT_CODES),
    ClassificationRow({400, 403, 404}, FAILED_REASON, Failure.DOWN, codes=NO_MODEL),
    *DEFAULT_TABLE,
)
CODE_STATUSES = (
    (MODERATED_CODES, 400),
    (re.compile(r"InvalidApiKey"), 401),
    (re.compile(r"^Throttling|RateQuota|AllocationQuota"), 429),
    (re.compile(r"Arrearage|AccessDenied"), 403),
    (NO_MODEL, 404),
    (re.compile(r"^(?:Invalid|Missing|BadRequest|UnsupportedOperation)"), 400),
)
"""(pattern of a code in a response with status 200 or a failed task, status of failures with it); 500 without a row."""
SYNC_REFUSED = re.compile(r"not support synchronous calls?", re.IGNORECASE)


def takes_only_tasks(model: str) -> bool:
    """Return whether a model is known to accept only tasks."""
    return (row := media_model(PROTOCOL_NAME, model)) is not None and row.api == "tasks"


def needs_task(error: UmgError) -> bool:
    """Return whether a provider's error for a synchronous call means that the model accepts only tasks."""
    return error.facts is not None and SYNC_REFUSED.search(error.facts.message) is not None


def stated_error(code: str, message: str | None) -> UmgError:
    """Return the caller's error for a code and message in a failed task, or in a response with status 200."""
    status = next((status for pattern, status in CODE_STATUSES if pattern.search(code)), 500)
    return from_provider(status, ProviderError(message=message or "", code=code), table=ERROR_TABLE)


# --- provider -> canonical


class Message(Struct):
    """Message of a choice."""

    content: list[dict[str, Raw]] | str | None = None
    """Texts or images, each in a member of its item."""


class Choice(Struct):
    """Choice of a response."""

    message: Message | None = None


class TaskImage(Struct):
    """Result of a task: the URL of an image, or the code and message of its failure."""

    url: str | None = None
    code: str | None = None
    message: str | None = None
    actual_prompt: str | None = None


class Output(Struct):
    """Member `output` of a response or of a task."""

    choices: list[Choice] | None = None
    results: list[TaskImage] | None = None
    task_id: str | None = None
    task_status: str | None = None
    code: str | None = None
    message: str | None = None


class Usage(Struct):
    """Member `usage`."""

    width: Count = None
    height: Count = None
    output_width: Count = None
    output_height: Count = None


class ResponseBody(Struct):
    """Body of a response: output and usage, or the code and message of an error."""

    output: Output | None = None
    usage: Usage | None = None
    code: str | int | None = None
    message: str | None = None


_BODY_DECODER = msgspec.json.Decoder(ResponseBody)
OF_PIECES = frozenset({"image", "text", "type"})
"""Members of an item of `content` that are not further properties of an image."""
_HTTP = re.compile("https?://", re.IGNORECASE)
ENDED_MEANINGS = frozenset({"failed", "cancelled", "expired", "lost"})
"""States in which a task has ended without images, by their meanings."""


def _read(body: bytes) -> tuple[Output, ResponseBody]:
    response = read_response(_BODY_DECODER, body)
    if not is_ok(response.code):
        raise stated_error(str(response.code), response.message)
    if response.output is None:
        raise unreadable(NO_RESPONSE)
    return response.output, response


def _read_task(body: bytes) -> tuple[Output, ResponseBody]:
    """Decode a body about a task as `_read` does. Return an empty pair for a body in another shape, of a relay."""
    try:
        response = decode(_BODY_DECODER, body)
    except (ValueError, RecursionError):
        return Output(), ResponseBody()
    if not is_ok(response.code):
        raise stated_error(str(response.code), response.message)
    return response.output or Output(), response


def decode_response(body: bytes, request: pb.GenerateImageRequest) -> pb.GenerateImageResponse:
    """Decode the response to a synchronous call: images of all choices. Raise UmgError for an error or none."""
    output, parsed = _read(body)
    response = pb.GenerateImageResponse()
    _add_choices(response, output)
    return _completed(response, request, parsed.usage, [])


def _add_choices(response: pb.GenerateImageResponse, output: Output) -> None:
    for choice in output.choices or ():
        content = choice.message.content if choice.message is not None else None
        for piece in content if isinstance(content, list) else ():
            if is_text(url := piece.get("image", ABSENT_MEMBER)):
                image = response.result.images.add(url=msgspec.json.decode(url))
                further = {name: raw for name, raw in piece.items() if name not in OF_PIECES and is_present(raw)}
                set_further(image, further)


def decode_created(body: bytes) -> str:
    """Return the id of the task that a call created. Raise UmgError for a body without an id."""
    output, _ = _read_task(body)
    if not (task_id := output.task_id or read_relayed(body, PROTOCOL_NAME).id):
        raise unreadable(": it has no id of the task")
    return task_id


def decode_status(body: bytes, request: pb.GenerateImageRequest) -> pb.GenerateImageResponse | None:
    """Return the images of a finished task without the failed ones. None while the task runs, or if its state is
    unknown. Raise UmgError for a failed task; `failure` is AMBIGUOUS for a finished task whose images may still appear.
    """
    output, parsed = _read_task(body)
    word = output.task_status or ""
    has_own = bool(output.results or output.choices)
    relayed = (
        RelayedTask() if own_meaning(word, PROTOCOL_NAME) == "done" and has_own else read_relayed(body, PROTOCOL_NAME)
    )
    meaning = own_meaning(word, PROTOCOL_NAME) or relayed.meaning
    if meaning in ENDED_MEANINGS:
        message = output.message or relayed.reason or f"the task ended as {word or relayed.word}"
        raise stated_error(output.code or relayed.code, message)
    if meaning != "done":
        return None
    response, failures = pb.GenerateImageResponse(), list[UmgError]()
    for made in output.results or ():
        if made.url:
            image = response.result.images.add(url=made.url)
            if made.actual_prompt:
                image.revised_prompt = made.actual_prompt
        elif made.code:
            failures.append(stated_error(made.code, made.message))
    _add_choices(response, output)
    if not has_own:
        for url in filter(_HTTP.match, relayed.addresses):
            response.result.images.add(url=url)
        if not response.result.images:
            raise unreadable(": the task is finished and has no images")
    return _completed(response, request, parsed.usage, failures)


def _completed(
    response: pb.GenerateImageResponse, request: pb.GenerateImageRequest, usage: Usage | None, failures: list[UmgError]
) -> pb.GenerateImageResponse:
    response.result.model = request.model
    check_images(response.result, failures)
    if usage is not None:
        width, height = count(usage.output_width or usage.width), count(usage.output_height or usage.height)
        for image in response.result.images:
            copy_size(image, f"{width}x{height}" if width and height else None)
    return response


DASHSCOPE_IMAGES = ImageProtocol(
    name=PROTOCOL_NAME,
    encode_request=encode_request,
    decode_response=decode_response,
    decode_error=partial(decode_error, too_long="prompt", table=ERROR_TABLE),
    takes_urls=lambda _: True,
    tasks=ImageTasks(
        is_required=needs_task,
        is_known=takes_only_tasks,
        encode_create=encode_create,
        decode_created=decode_created,
        encode_query=encode_query,
        decode_status=decode_status,
    ),
    provider_name="alibaba_cloud",
)
