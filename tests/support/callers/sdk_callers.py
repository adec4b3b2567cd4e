"""Test callers with the official SDKs, with one interface for the four formats. Answers are read from the objects and
accumulators of the SDK.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import anthropic
import openai
from google import genai
from google.genai import types
from openai.lib.streaming.chat import ChatCompletionStreamState

from tests.pairs.table import TEXT_FACES
from tests.support.callers.format_free_answers import Answer
from tests.support.callers.requests import Json, Request, Turn


class SdkCaller(Protocol):
    async def call(self, request: Request, previous: Turn | None = None) -> Answer:
        """Call the model and return its response. `previous`: the response whose tool calls the caller has run."""
        ...

    async def stream(self, request: Request, previous: Turn | None = None) -> Answer: ...


@asynccontextmanager
async def sdk_caller(name: str, root_url: str, key: str, model: str = "m") -> AsyncGenerator[SdkCaller, None]:
    """Yield the SDK caller of a format, without retries. `root_url`: address of the server, without a path."""
    match name:
        case "chat" | "responses":
            async with openai.AsyncOpenAI(base_url=f"{root_url}/v1", api_key=key, max_retries=0) as sdk:
                yield ChatCaller(sdk, model) if name == "chat" else ResponsesCaller(sdk, model)
        case "messages":
            async with anthropic.AsyncAnthropic(base_url=root_url, api_key=key, max_retries=0) as messages:
                yield MessagesCaller(messages, model)
        case "native":
            options = types.HttpOptions(base_url=root_url, api_version="v1beta")
            client = genai.Client(api_key=key, http_options=options)
            try:
                yield NativeCaller(client, model)
            finally:
                await client.aio.aclose()
                client.close()


def sendable(value: Any, *more: str) -> Any:
    """Return a value without the fields that the SDK's stream helpers add and the API refuses."""
    if isinstance(value, list):
        return [sendable(each, *more) for each in value]
    if isinstance(value, dict):
        added = ("parsed", "parsed_arguments", *more)
        return {key: sendable(each, *more) for key, each in value.items() if key not in added}
    return value


@dataclass
class ChatCaller:
    sdk: openai.AsyncOpenAI
    model: str

    async def call(self, request: Request, previous: Turn | None = None) -> Answer:
        body = TEXT_FACES["chat"].body(request, self.model, previous)
        return self._answer(await self.sdk.chat.completions.create(**body))

    async def stream(self, request: Request, previous: Turn | None = None) -> Answer:
        state = ChatCompletionStreamState()
        body = TEXT_FACES["chat"].body(request, self.model, previous, stream=True)
        async for chunk in await self.sdk.chat.completions.create(**body):
            state.handle_chunk(chunk)
        return self._answer(state.current_completion_snapshot)

    def _answer(self, completion: Any) -> Answer:
        choice, usage = completion.choices[0], completion.usage
        message, text = choice.message, choice.message.content or ""
        notes = [note.url_citation if hasattr(note, "url_citation") else note for note in message.annotations or ()]
        notes = [note if isinstance(note, dict) else note.model_dump() for note in notes]
        notes = [note.get("url_citation", note) for note in notes]
        calls = message.tool_calls or ()
        return Answer(
            text=text,
            reasoning=getattr(message, "reasoning_content", "") or "",
            calls=tuple((call.function.name, json.loads(call.function.arguments)) for call in calls),
            citations=tuple(
                (note["url"], note["title"], text[note["start_index"] : note["end_index"]]) for note in notes
            ),
            refusal=message.refusal or "",
            finish=choice.finish_reason,
            usage=(
                usage.prompt_tokens,
                usage.prompt_tokens_details.cached_tokens or 0,
                usage.completion_tokens,
                usage.completion_tokens_details.reasoning_tokens or 0,
            ),
            turn=Turn(
                sendable(message.to_dict(mode="json"), "index"),
                tuple((call.id, call.function.name) for call in calls),
            ),
        )


@dataclass
class ResponsesCaller:
    sdk: openai.AsyncOpenAI
    model: str

    async def call(self, request: Request, previous: Turn | None = None) -> Answer:
        body = TEXT_FACES["responses"].body(request, self.model, previous)
        return self._answer(await self.sdk.responses.create(**body))

    async def stream(self, request: Request, previous: Turn | None = None) -> Answer:
        last = None
        async with self.sdk.responses.stream(**TEXT_FACES["responses"].body(request, self.model, previous)) as events:
            async for event in events:
                if event.type in ("response.completed", "response.incomplete", "response.failed"):
                    last = event.response
                elif event.type == "error":
                    raise openai.APIError(event.message, None, body=None)  # type: ignore[arg-type]
        assert last is not None, "the stream ended without a response"
        return self._answer(last)

    def _answer(self, response: Any) -> Answer:
        parts = [part for item in response.output if item.type == "message" for part in item.content]
        texts = [part for part in parts if part.type == "output_text"]
        calls = [item for item in response.output if item.type == "function_call"]
        summaries = [each.text for item in response.output if item.type == "reasoning" for each in item.summary]
        reason = response.incomplete_details.reason if response.incomplete_details else ""
        usage = response.usage
        return Answer(
            text="".join(part.text for part in texts),
            reasoning="".join(summaries),
            calls=tuple((call.name, json.loads(call.arguments)) for call in calls),
            citations=tuple(
                (note.url, note.title, part.text[note.start_index : note.end_index])
                for part in texts
                for note in part.annotations
            ),
            refusal="".join(part.refusal for part in parts if part.type == "refusal"),
            finish=reason or response.status,
            usage=(
                usage.input_tokens,
                usage.input_tokens_details.cached_tokens,
                usage.output_tokens,
                usage.output_tokens_details.reasoning_tokens,
            ),
            turn=Turn(
                sendable(response.to_dict(mode="json")),
                tuple((call.call_id, call.name) for call in calls),
            ),
        )


@dataclass
class MessagesCaller:
    sdk: anthropic.AsyncAnthropic
    model: str

    async def call(self, request: Request, previous: Turn | None = None) -> Answer:
        body = TEXT_FACES["messages"].body(request, self.model, previous)
        return self._answer(await self.sdk.messages.create(**body))

    async def stream(self, request: Request, previous: Turn | None = None) -> Answer:
        async with self.sdk.messages.stream(**TEXT_FACES["messages"].body(request, self.model, previous)) as stream:
            return self._answer(await stream.get_final_message())

    def _answer(self, message: Any) -> Answer:
        texts = [block for block in message.content if block.type == "text"]
        calls = [block for block in message.content if block.type == "tool_use"]
        usage, cached = message.usage, message.usage.cache_read_input_tokens or 0
        details = usage.output_tokens_details
        return Answer(
            text="".join(block.text for block in texts),
            reasoning="".join(block.thinking for block in message.content if block.type == "thinking"),
            calls=tuple((block.name, dict(block.input)) for block in calls),
            citations=tuple(
                (note.url, note.title or "", block.text)
                for block in texts
                for note in block.citations or ()
                if note.type == "web_search_result_location"
            ),
            notice=(message.stop_details.explanation or "") if message.stop_details else "",
            finish=message.stop_reason or "",
            usage=(
                usage.input_tokens + cached + (usage.cache_creation_input_tokens or 0),
                cached,
                usage.output_tokens,
                details.thinking_tokens if details else 0,
            ),
            turn=Turn(
                [block.to_dict(mode="json") for block in message.content],
                tuple((block.id, block.name) for block in calls),
            ),
        )


@dataclass
class NativeCaller:
    sdk: genai.Client
    model: str

    async def call(self, request: Request, previous: Turn | None = None) -> Answer:
        options = self._options(request, previous)
        return self._answer([await self.sdk.aio.models.generate_content(model=self.model, **options)])

    async def stream(self, request: Request, previous: Turn | None = None) -> Answer:
        options = self._options(request, previous)
        stream = await self.sdk.aio.models.generate_content_stream(model=self.model, **options)
        return self._answer([chunk async for chunk in stream])

    def _options(self, request: Request, previous: Turn | None) -> Json:
        """Return contents and config of a request. The config has the body's other fields beside its own."""
        body = TEXT_FACES["native"].body(request, self.model, previous)
        contents = [types.Content.model_validate_json(json.dumps(content)) for content in body.pop("contents")]
        config = body.pop("generationConfig") | body
        return {
            "contents": contents,
            "config": types.GenerateContentConfig.model_validate_json(json.dumps(config)),
        }

    def _answer(self, chunks: list[types.GenerateContentResponse]) -> Answer:
        candidates = [chunk.candidates[0] for chunk in chunks if chunk.candidates]
        parts = [
            part
            for each in candidates
            if each.content and each.content.parts is not None
            for part in each.content.parts
        ]
        calls = [part.function_call for part in parts if part.function_call]
        text = "".join(part.text for part in parts if part.text and not part.thought)
        last, usage = (candidates[-1] if candidates else types.Candidate()), chunks[-1].usage_metadata
        assert usage is not None
        thoughts = usage.thoughts_token_count or 0
        texts = [text] if len(chunks) > 1 else [part.text or "" for part in parts]
        return Answer(
            text=text,
            reasoning="".join(part.text for part in parts if part.text and part.thought),
            calls=tuple((call.name or "", dict(call.args or {})) for call in calls),
            citations=tuple(_citations(last.grounding_metadata, texts)),
            finish=last.finish_reason.value if last.finish_reason else "",
            usage=(
                usage.prompt_token_count or 0,
                usage.cached_content_token_count or 0,
                (usage.candidates_token_count or 0) + thoughts,
                thoughts,
            ),
            turn=Turn(
                [part.model_dump(mode="json", by_alias=True, exclude_none=True) for part in parts],
                tuple((call.id or "", call.name or "") for call in calls),
            ),
        )


def _citations(found: types.GroundingMetadata | None, texts: list[str]) -> list[tuple[str, str, str]]:
    """Return the citations, by the bytes of their segments in the part that each names; a stream is one part."""
    citations = []
    for support in (found.grounding_supports if found else None) or ():
        assert found is not None
        assert found.grounding_chunks is not None
        assert support.segment is not None
        text = texts[support.segment.part_index or 0 if len(texts) > 1 else 0].encode()
        cited = text[support.segment.start_index or 0 : support.segment.end_index].decode()
        for place in support.grounding_chunk_indices or ():
            web = found.grounding_chunks[place].web
            assert web is not None
            citations.append((web.uri or "", web.title or "", cited))
    return citations
