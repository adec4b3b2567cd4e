"""Options of `POST /api/chat` and `POST /api/generate`: model parameters, reasoning, and the response's format."""

from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.json_decoding import INT64_MAX, convert, invalid, is_present, parse, whole
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.ollama.schema import Options, SharedBody

COPIED_OPTIONS = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
KNOWN_OPTIONS = (*COPIED_OPTIONS, "top_k", "seed", "num_predict", "stop")
"""Members of `options` with a canonical form."""
JSON_MODE = ("json", "json_object")  # any JSON; clients often send OpenAI's value


def decode_options(body: SharedBody, request: pb.GenerateRequest, notes: RequestNotes) -> None:
    """Decode fields of both bodies. `notes`: receives those without canonical form. Raise UmgError(INVALID_FIELD)."""
    if is_present(body.options):
        _decode_parameters(parse(dict[str, Raw], body.options, "options"), request, notes)
    if is_present(body.format):
        _decode_format(body.format, request)
    if body.think is not None:
        _decode_think(body.think, request.reasoning)
    if body.truncate is not None:
        request.truncation = pb.TRUNCATION_AUTO if body.truncate else pb.TRUNCATION_DISABLED
    if body.logprobs is not None:
        request.logprobs = body.logprobs
    if body.top_logprobs is not None:
        request.top_logprobs = body.top_logprobs
    if is_present(body.keep_alive):
        notes.uncarried.append("keep_alive")


def _decode_parameters(given: dict[str, Raw], request: pb.GenerateRequest, notes: RequestNotes) -> None:
    present = {name: raw for name, raw in given.items() if is_present(raw)}
    notes.uncarried.extend(f"options.{name}" for name in present if name not in KNOWN_OPTIONS)
    known = {name: parse(object, raw, f"options.{name}") for name, raw in present.items() if name in KNOWN_OPTIONS}
    options = convert(Options, known, "options")
    for name in COPIED_OPTIONS:
        if (value := getattr(options, name)) is not None:
            setattr(request, name, value)
    # zero and negative numbers of these options are the vendor's words for no limit and for any seed
    if (top_k := whole(options.top_k, "options.top_k", MAX_COUNT)) is not None and top_k > 0:
        request.top_k = top_k
    if (limit := whole(options.num_predict, "options.num_predict", MAX_COUNT)) is not None and limit > 0:
        request.max_output_tokens = limit
    if (seed := whole(options.seed, "options.seed", INT64_MAX)) is not None and seed >= 0:
        request.seed = seed
    if options.stop:
        stops = [options.stop] if isinstance(options.stop, str) else options.stop
        request.stop_sequences.extend(stop for stop in stops if stop)


def _decode_format(raw: Raw, request: pb.GenerateRequest) -> None:
    text = bytes(raw)
    if text.startswith(b"{"):
        request.response_format.json_schema.schema_json = text.decode()
    elif (name := parse(str, raw, "format") if text.startswith(b'"') else None) in JSON_MODE:
        request.response_format.json.SetInParent()
    elif name != "":  # clients send an empty text for no format
        raise invalid("format", "expected `json` or a JSON schema; send one of them, or leave it out")


def _decode_think(think: bool | str, reasoning: pb.ReasoningOptions) -> None:
    if isinstance(think, str):
        reasoning.effort = think
    else:
        reasoning.mode = pb.REASONING_MODE_ENABLED if think else pb.REASONING_MODE_DISABLED
