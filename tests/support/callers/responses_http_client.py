"""Plain HTTP client of the responses format: encodes requests and decodes answers."""

from typing import Any

from tests.support.callers.requests import RESULTS, Json, Request, Turn, data_url


def encode_request(request: Request, model: str, previous: Turn | None = None) -> Json:
    items: list[Any] = [{"role": role, "content": text} for role, text in request.history]
    content: list[Json] = [{"type": "input_text", "text": request.text}]
    if request.image:
        content.append({"type": "input_image", "image_url": data_url("image/png", request.image), "detail": "auto"})
    if request.file:
        content.append(
            {"type": "input_file", "filename": "a.pdf", "file_data": data_url("application/pdf", request.file)}
        )
    items.append({"role": "user", "content": content if len(content) > 1 else request.text})
    body: Json = {"model": model, "max_output_tokens": request.limit, "store": request.stored}
    if previous:
        if request.stored:
            items, body["previous_response_id"] = [], previous.content["id"]
        else:
            items += previous.content["output"]
        items += [
            {"type": "function_call_output", "call_id": id_, "output": RESULTS[name]} for id_, name in previous.calls
        ]
    body["input"] = items
    if request.system:
        body["instructions"] = request.system
    tools: list[Json] = [
        {"type": "function", "name": name, "description": name, "parameters": request.schemas[name], "strict": False}
        for name in request.tools
    ]
    if request.tools:
        named = {"type": "function", "name": request.choice}
        body["tool_choice"] = request.choice if request.choice in ("auto", "required") else named
    if request.search:
        tools.append({"type": "web_search"})
    if tools:
        body["tools"] = tools
    if request.reasoning:
        body["reasoning"] = {"effort": "high", "summary": "auto"}
        if not request.stored:
            body["include"] = ["reasoning.encrypted_content"]
    if request.schema:
        body["text"] = {"format": {"type": "json_schema", "name": "city", "schema": request.schema, "strict": True}}
    return body


def aggregate(events: list[Json]) -> Json:
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["type"] in ("response.completed", "response.incomplete"), events[-1]
    last: Json = events[-1]["response"]
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert items == last["output"]
    return last


def turn_of(answer: Json) -> Turn:
    calls = tuple((item["call_id"], item["name"]) for item in answer["output"] if item["type"] == "function_call")
    return Turn(answer, calls)
