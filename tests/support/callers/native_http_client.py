"""Plain HTTP client of the native format: encodes requests and decodes answers."""

import base64
from collections.abc import Iterator
from typing import Any

from tests.support.callers.requests import RESULTS, Json, Request, Turn


def encode_request(request: Request, model: str, previous: Turn | None = None) -> Json:
    roles = {"user": "user", "assistant": "model"}
    contents: list[Any] = [{"role": roles[role], "parts": [{"text": text}]} for role, text in request.history]
    parts: list[Json] = [{"text": request.text}]
    for media_type, data in (("image/png", request.image), ("application/pdf", request.file)):
        if data:
            parts.append({"inlineData": {"mimeType": media_type, "data": base64.b64encode(data).decode()}})
    contents.append({"role": "user", "parts": parts})
    if previous:
        results = [
            {"functionResponse": {"name": name, "response": {"output": RESULTS[name]}} | ({"id": id_} if id_ else {})}
            for id_, name in previous.calls
        ]
        contents += [{"role": "model", "parts": previous.content}, {"role": "user", "parts": results}]
    config: Json = {"maxOutputTokens": request.limit}
    body: Json = {"contents": contents, "generationConfig": config}
    if request.system:
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    tools: list[Json] = []
    if request.tools:
        declared = [
            {"name": name, "description": name, "parametersJsonSchema": request.schemas[name]} for name in request.tools
        ]
        tools.append({"functionDeclarations": declared})
        calling: Json = {"mode": "AUTO" if request.choice == "auto" else "ANY"}
        if request.choice not in ("auto", "required"):
            calling["allowedFunctionNames"] = [request.choice]
        body["toolConfig"] = {"functionCallingConfig": calling}
    if request.search:
        tools.append({"googleSearch": {}})
    if tools:
        body["tools"] = tools
    if request.reasoning:
        config["thinkingConfig"] = {"includeThoughts": True, "thinkingBudget": 1024}
    if request.schema:
        config |= {"responseMimeType": "application/json", "responseJsonSchema": request.schema}
    if request.stop:
        config["stopSequences"] = [request.stop]
    return body


def aggregate(chunks: list[Json]) -> Json:
    """Aggregate the chunks of a stream as users of the SDK do: the parts of all chunks, and the other fields of the
    last.
    """
    parts = [part for chunk in chunks for part in _parts(chunk)]
    answer = chunks[-1]
    if answer.get("candidates"):
        grounding = [found for chunk in chunks if (found := chunk["candidates"][0].get("groundingMetadata"))]
        answer["candidates"][0]["content"] = {"role": "model", "parts": parts}
        answer["candidates"][0] |= {"groundingMetadata": grounding[-1]} if grounding else {}
    return answer


def _parts(answer: Json) -> Iterator[Json]:
    for candidate in answer.get("candidates") or ():
        yield from candidate["content"].get("parts") or ()


def turn_of(answer: Json) -> Turn:
    parts = list(_parts(answer))
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    return Turn(parts, tuple((call.get("id", ""), call["name"]) for call in calls))


def path(model: str, stream: bool) -> str:
    return f"/v1beta/models/{model}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"
