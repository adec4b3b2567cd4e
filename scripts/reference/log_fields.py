"""Reference page of the fields in the log line of a call, with the meaning of each."""

from scripts.reference.markdown import code, table
from umg_grpc.service.pipeline.call_log import CallLine

MEANINGS = {
    "timestamp": "Time of the line in UTC, in milliseconds.",
    "level": "Severity: `info` for each call.",
    "event": "`call`.",
    "method": "Method of the schema, e.g. `GenerationService/StreamGenerate`.",
    "face": "Wire format of the caller over HTTP; absent over gRPC.",
    "request_id": "Id of the call, which every response has as `x-request-id`.",
    "trace_id": "Id of the trace, from `traceparent` or made by the gateway's telemetry.",
    "outcome": "`OK`, or the [reason](errors.md) of the error.",
    "cause": "Cause of the error, where several have the same reason.",
    "ms": "Milliseconds to the end of the response.",
    "first_ms": "Milliseconds to the first output of a stream.",
    "key": "Id of the key, also of a rejected one.",
    "key_prefix": "First characters of the key.",
    "model": "Public id of the model.",
    "requested_model": "Id of the requested model, where a [fallback](../fallbacks.md) was called in its place.",
    "fallback_cause": "Cause of the fallback.",
    "guards": "Decisions of the [guards](../guards.md) by phase and name.",
    "guard_notes": "Annotations of the guards.",
    "channel": "Last channel that was called.",
    "attempts": "Number of attempts.",
    "abandoned": "Channels whose attempts were given up for another channel's answer.",
    "input_tokens": "Input tokens.",
    "output_tokens": "Output tokens.",
    "estimated": "`true` where the gateway counted the tokens itself.",
    "finish_reason": "Finish reason of the provider that this version does not know; the response counts as complete.",
    "cost": "Cost in credits.",
    "kind": "[Kind of failure](../operating.md#failures-of-providers) of the provider.",
    "upstream_status": "HTTP status of the provider.",
    "upstream_code": "Code of the provider's error.",
    "upstream_message": "Message of the provider's error.",
    "upstream_request_id": "The provider's own id of the call.",
    "upstream_model": "Id of the model at the provider.",
    "upstream_host": "Host of the provider.",
    "upstream_path": "Path at the provider.",
    "upstream_right_base_url": "`base_url` that is probably meant.",
    "upstream_content_type": "Content type of the provider's response.",
    "upstream_key": "Last four characters of the provider key.",
}
"""Meaning of each field, in the order of a line."""


def written() -> set[str]:
    """Return the names of the fields that the program writes."""
    return {"timestamp", "level", "event", *CallLine.__struct_fields__}


HEAD = """# Fields of the log

Each call has one line on standard error, with these fields; fields without a value are absent. The line is JSON, unless
standard error is a terminal or `log.format` in the config selects text.
"""


def page() -> str:
    """Return the reference page of the fields, as Markdown."""
    return f"{HEAD}\n{table(('field', 'meaning'), [[code(name), meaning] for name, meaning in MEANINGS.items()])}"
