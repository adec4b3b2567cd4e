"""Answers of the strict fake provider of native generate, in the forms of reference 4.2, 4.3 and 4.5."""

import base64
from collections.abc import Iterator

from tests.support.providers.common import compact, letters, sign
from tests.support.providers.scenarios import QUERY, REFUSAL, Answer, ScenarioRequest, Source, Usage
from tests.support.providers.server import Json

FINISH = {"stop": "STOP", "stop_sequence": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY", "filter": "SAFETY"}
STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
STATUSES |= {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}
RATING = {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}


def error(status: int, message: str) -> Json:
    default = "UNAVAILABLE" if status >= 500 else "FAILED_PRECONDITION"
    return {"error": {"code": status, "message": message, "status": STATUSES.get(status, default)}}


def frame(chunk: Json) -> bytes:
    return f"data: {compact(chunk)}\r\n\r\n".encode()


def _head(request: ScenarioRequest) -> Json:
    return {
        "modelVersion": request.model,
        "responseId": letters(request.step),
        "createTime": "2026-01-01T00:00:00.000001Z",
    }


def whole(request: ScenarioRequest, answer: Answer, *, shown: bool, ids: bool) -> Json:
    head = _head(request) | {"usageMetadata": _usage(answer.usage)}
    if answer.finish == "blocked":
        return {"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": [RATING]}} | head
    parts: list[Json] = [{"text": answer.thought, "thought": True}] if answer.thoughts and shown else []
    if answer.words:
        signed = {"thoughtSignature": _signature(request)} if answer.signed and not answer.calls else {}
        parts.append({"text": answer.text} | signed)
    if answer.image:
        parts.append({"inlineData": {"mimeType": "image/png", "data": base64.b64encode(answer.image).decode()}})
    parts += _calls(request, answer, ids)
    candidate = _candidate(parts) | _finish(answer)
    if answer.sources:
        candidate["groundingMetadata"] = _grounding(answer)
    return {"candidates": [candidate]} | head


def chunks(request: ScenarioRequest, answer: Answer, *, shown: bool, ids: bool) -> Iterator[Json]:
    """Yield the chunks of a stream, each with the running token counts."""
    whole_usage = _usage(answer.usage)
    early = {"promptTokenCount": answer.usage.prompt, "totalTokenCount": answer.usage.prompt}
    if answer.finish == "blocked":
        yield whole(request, answer, shown=shown, ids=ids)
        return

    def chunk(parts: list[Json]) -> Json:
        candidate = _candidate(parts) | ({"groundingMetadata": {}} if answer.sources else {})
        return {"candidates": [candidate]} | _head(request) | {"usageMetadata": early}

    for piece in answer.thoughts if shown else ():
        yield chunk([{"text": piece, "thought": True}])
    for piece in answer.words:
        yield chunk([{"text": piece}])
    if answer.image:
        yield chunk([{"inlineData": {"mimeType": "image/png", "data": base64.b64encode(answer.image).decode()}}])
    if answer.calls:
        yield chunk(_calls(request, answer, ids))
    signed = {"thoughtSignature": _signature(request)} if answer.signed and not answer.calls else {}
    parts = [] if answer.finish == "refusal" else [{"text": ""} | signed]
    candidate = _candidate(parts) | _finish(answer)
    if answer.sources:
        candidate["groundingMetadata"] = _grounding(answer)
    yield {"candidates": [candidate]} | _head(request) | {"usageMetadata": whole_usage}


def _candidate(parts: list[Json]) -> Json:
    content = {"role": "model", "parts": parts} if parts else {}
    return {"content": content, "index": 0}


def _finish(answer: Answer) -> Json:
    ending: Json = {"finishReason": FINISH[answer.finish]}
    if ending["finishReason"] == "SAFETY":
        ending |= {"finishMessage": answer.refusal or REFUSAL, "safetyRatings": [RATING]}
    return ending


def _signature(request: ScenarioRequest) -> str:
    return sign(f"native {request.turns}")


def _calls(request: ScenarioRequest, answer: Answer, ids: bool) -> list[Json]:
    parts: list[Json] = []
    for position, call in enumerate(answer.calls):
        made: Json = {"name": call.name, "args": dict(call.arguments)}
        if ids:
            made["id"] = f"f{position}{letters(str(request.turns))}"
        parts.append({"functionCall": made})
    if answer.signed and parts:
        parts[0]["thoughtSignature"] = _signature(request)
    return parts


def _grounding(answer: Answer) -> Json:
    return {
        "webSearchQueries": [QUERY],
        "searchEntryPoint": {"renderedContent": "<div>search</div>"},
        "groundingChunks": [{"web": {"uri": source.url, "title": source.title}} for source in answer.sources],
        "groundingSupports": [
            {"segment": _segment(answer.text, source), "groundingChunkIndices": [position]}
            for position, source in enumerate(answer.sources)
        ],
    }


def _segment(text: str, source: Source) -> Json:
    start, end = (len(text[:position].encode()) for position in (source.start, source.end))
    return ({"startIndex": start} if start else {}) | {"endIndex": end, "text": text[source.start : source.end]}


def _usage(usage: Usage) -> Json:
    """Return the token counts; those of 0 are left out."""
    counts = {
        "promptTokenCount": usage.prompt,
        "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": usage.output - usage.thoughts,
        "thoughtsTokenCount": usage.thoughts,
        "totalTokenCount": usage.prompt + usage.output,
    }
    details = [{"modality": "TEXT", "tokenCount": usage.prompt}]
    return {name: count for name, count in counts.items() if count} | {"promptTokensDetails": details}
