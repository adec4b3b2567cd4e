"""Strict fake provider of native generate (reference, section 4): the rules for requests. `native_wire` has the
answers.

Accepts the fields of `google.genai.types` for the vendor's own API (not for its cloud's), camelCase or snake_case.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from aiohttp import web
from google.genai import types

from tests.support.providers import native_wire as wire
from tests.support.providers.common import compact
from tests.support.providers.native_rules import (
    Config,
    Request,
    functions_of,
    is_question,
    judge_config,
    judge_contents,
    judge_position,
    judge_tools,
    medium_of,
    paired,
    parsed,
)
from tests.support.providers.scenarios import Answer, Media, Result, ScenarioRequest, turns
from tests.support.providers.server import KEY, Json, ReceivedRequest, RefusedError

PATH = re.compile(r"/(v1|v1beta)/models/(.+):(\w+)")
# The documented placeholders for calls that another model made, plain and as base64 (reference, 6.4).
PLACEHOLDERS = frozenset(
    word
    for text in (b"skip_thought_signature_validator", b"context_engineering_is_the_way_to_go")
    for word in (text, base64.b64decode(text + b"=" * (-len(text) % 4), b"-_"))
)


@dataclass
class Native:
    """Strict fake provider of native generate (see the module). `call_ids`: whether calls have ids, as those of the
    newest models do. `alternates`: whether two turns of one role in a row are refused, which the newest models accept.
    """

    call_ids: bool = True
    alternates: bool = True
    name = "native"
    base_path = "/v1beta"
    heartbeat = b"\r\n"
    states: set[bytes] = field(default_factory=set)  # thought signatures that the provider has issued
    signed: set[str] = field(default_factory=set)  # calls that the provider has signed

    def admit(self, received: ReceivedRequest) -> None:
        if KEY not in (received.headers.get("x-goog-api-key"), received.query.get("key")):
            raise RefusedError("API key not valid. Please pass a valid API key.")

    def generates(self, received: ReceivedRequest) -> bool:
        found = PATH.fullmatch(received.path)
        return bool(found) and received.method == "POST" and found[3] in ("generateContent", "streamGenerateContent")

    def other(self, received: ReceivedRequest) -> Json | None:
        return None

    def content_type(self, request: web.Request) -> str:
        return "text/event-stream" if request.query.get("alt") == "sse" else "application/json; charset=UTF-8"

    def error(self, status: int, message: str, at: str | None, code: str | None) -> Json:
        return wire.error(status, message)

    def error_frame(self, message: str, sent: list[bytes], *, bare: bool) -> bytes:
        return wire.frame(wire.error(503, message))

    def read(self, received: ReceivedRequest) -> ScenarioRequest:
        request = parsed(received)
        judge_position(request)
        judge_config(request.generation_config or Config())
        judge_tools(request)
        judge_contents(request.contents, alternates=self.alternates)
        path = PATH.fullmatch(received.path)
        assert path is not None
        scenario = _scenario_request(request, path[2], path[3] == "streamGenerateContent")
        self._judge_signatures(request.contents, scenario)
        return scenario

    def _judge_signatures(self, contents: list[types.Content], request: ScenarioRequest) -> None:
        """Check that all signatures are the provider's own, and that signed calls of this turn still have theirs."""
        start = max((at for at, content in enumerate(contents) if is_question(content)), default=0)
        for at, content in enumerate(contents):
            first = True
            for place, part in enumerate(content.parts or ()):
                signature = part.thought_signature
                if signature is not None and signature not in self.states | PLACEHOLDERS:
                    raise RefusedError("Corrupted thought signature.")
                if part.function_call and first:
                    first = False
                    if (
                        signature is None
                        and at > start
                        and request.scenario == "thinking-tools"
                        and _call(part) in self.signed
                    ):
                        raise RefusedError(
                            "Function call is missing a thought_signature in functionCall parts. This is required for "
                            f"tools to work correctly. Function call `{part.function_call.name}`, position {place}."
                        )

    def whole(self, request: ScenarioRequest, answer: Answer, received: ReceivedRequest) -> Json:
        response = wire.whole(request, answer, shown=_shown(received.json), ids=self.call_ids)
        self._keep([response])
        return response

    def frames(self, request: ScenarioRequest, answer: Answer, received: ReceivedRequest) -> Iterator[bytes]:
        chunks = list(wire.chunks(request, answer, shown=_shown(received.json), ids=self.call_ids))
        self._keep(chunks)
        if received.query.get("alt") == "sse":
            return (wire.frame(chunk) for chunk in chunks)
        last = len(chunks) - 1
        return (
            f"{'[' if at == 0 else ''}{compact(chunk)}{']' if at == last else ','}\r\n".encode()
            for at, chunk in enumerate(chunks)
        )

    def _keep(self, chunks: list[Json]) -> None:
        for chunk in chunks:
            for candidate in chunk.get("candidates", ()):
                for part in candidate.get("content", {}).get("parts", ()):
                    if "thoughtSignature" in part:
                        self.states.add(base64.b64decode(part["thoughtSignature"]))
                        if "functionCall" in part:
                            self.signed.add(compact([part["functionCall"]["name"], part["functionCall"]["args"]]))


# --- the request for the scenarios


def _call(part: types.Part) -> str:
    return compact([part.function_call.name, part.function_call.args or {}])


def _shown(body: Json) -> bool:
    config = body.get("generationConfig", body.get("generation_config")) or {}
    thinking = config.get("thinkingConfig", config.get("thinking_config")) or {}
    return thinking.get("includeThoughts", thinking.get("include_thoughts")) is True


def _result(call: types.Part, result: types.Part) -> Result:
    given = result.function_response
    response = dict(given.response or {})
    failed = set(response) == {"error"}
    value = next((response[key] for key in ("output", "result", "error") if set(response) == {key}), response)
    media = tuple(
        Media(part.inline_data.mime_type or "", part.inline_data.data or b"")
        for part in given.parts or ()
        if part.inline_data
    )
    return Result(call.function_call.name, value if isinstance(value, str) else compact(value), failed, media)


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content else None) or ()
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def _choice(request: Request) -> str:
    config = request.tool_config and request.tool_config.function_calling_config
    if config is None or config.mode is None:
        return "auto"
    allowed = config.allowed_function_names or []
    if config.mode.value == "ANY":
        return allowed[0] if len(allowed) == 1 else "required"
    return config.mode.value.lower()


def _scenario_request(request: Request, model: str, streamed: bool) -> ScenarioRequest:
    config = request.generation_config or Config()
    contents, last = request.contents, request.contents[-1]
    results = [part for part in last.parts or () if part.function_response]
    calls = [part for part in contents[-2].parts or () if part.function_call] if results else []
    conversation = [("assistant" if content.role == "model" else "user", _text(content)) for content in contents]
    schema = config.response_json_schema
    if config.response_schema is not None:
        schema = config.response_schema.model_dump(exclude_none=True)
    return ScenarioRequest(
        model=model,
        stream=streamed,
        system="\n\n".join(part.text or "" for part in (request.system_instruction or types.Content()).parts or ()),
        turns=turns(conversation),
        media=tuple(
            medium
            for content in contents
            if content.role != "model"
            for part in content.parts or ()
            if (medium := medium_of(part, ""))
        ),
        tools={
            one.name or "": one.parameters_json_schema
            or (one.parameters.model_dump(exclude_none=True) if one.parameters else {})
            for one in functions_of(request)
        },
        choice=_choice(request),
        results=tuple(_result(call, result) for call, result in paired(calls, results)),
        thinking=not config.thinking_config or config.thinking_config.thinking_budget != 0,
        thought_back=bool(calls)
        and calls[0].thought_signature is not None
        and calls[0].thought_signature not in PLACEHOLDERS,
        json=config.response_mime_type == "application/json",
        schema=schema,
        stops=tuple(config.stop_sequences or ()),
        limit=config.max_output_tokens,
        search=any(tool.google_search or tool.google_search_retrieval for tool in request.tools or ()),
        draws="IMAGE" in [each.value for each in config.response_modalities or ()],
    )
