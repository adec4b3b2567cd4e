"""Responses with the SDK of openai."""

import json
from dataclasses import dataclass
from typing import Any

import openai

from tests.providers.callers.wish import Json, Shown, Wish, data_url, sendable
from tests.providers.scenarios import TOOLS


@dataclass
class ResponsesCaller:
    """AsyncOpenAI.responses. `keeps`: goes on by the id of the response; else by its items, with the encrypted state."""

    sdk: openai.AsyncOpenAI
    model: str
    keeps: bool = False

    async def ask(self, wish: Wish) -> Shown:
        return self._shown(await self.sdk.responses.create(**self._request(wish)))

    async def stream(self, wish: Wish) -> Shown:
        last = None
        async with self.sdk.responses.stream(**self._request(wish)) as events:
            async for event in events:
                if event.type in ("response.completed", "response.incomplete", "response.failed"):
                    last = event.response
                elif event.type == "error":
                    raise openai.APIError(event.message, None, body=None)  # type: ignore[arg-type]
        assert last is not None, "the stream ended without a response"
        return self._shown(last)

    def _request(self, wish: Wish) -> Json:
        items: list[Any] = [{"role": role, "content": text} for role, text in wish.history]
        content: list[Json] = [{"type": "input_text", "text": wish.text}]
        if wish.image:
            content.append({"type": "input_image", "image_url": data_url("image/png", wish.image), "detail": "auto"})
        if wish.file:
            data = data_url("application/pdf", wish.file)
            content.append({"type": "input_file", "filename": "a.pdf", "file_data": data})
        items.append({"role": "user", "content": content if len(content) > 1 else wish.text})
        request: Json = {"model": self.model, "max_output_tokens": wish.limit, "store": self.keeps}
        if wish.before:
            if self.keeps:
                items, request["previous_response_id"] = [], wish.before.turn.id
            else:
                items += [sendable(item.to_dict(mode="json")) for item in wish.before.turn.output]
            for name, (tool, _) in zip(wish.before.ids, wish.before.calls, strict=True):
                items.append({"type": "function_call_output", "call_id": name, "output": wish.results[tool]})
        request["input"] = items
        if wish.system:
            request["instructions"] = wish.system
        tools: list[Json] = [
            {"type": "function", "name": name, "description": name, "parameters": TOOLS[name], "strict": False}
            for name in wish.tools
        ]
        if wish.tools:
            named = {"type": "function", "name": wish.choice}
            request["tool_choice"] = wish.choice if wish.choice in ("auto", "required") else named
        if wish.search:
            tools.append({"type": "web_search"})
        if tools:
            request["tools"] = tools
        if wish.thinking:
            request["reasoning"] = {"effort": "high", "summary": "auto"}
            request["include"] = [] if self.keeps else ["reasoning.encrypted_content"]
        if wish.schema:
            described = {"type": "json_schema", "name": "city", "schema": wish.schema, "strict": True}
            request["text"] = {"format": described}
        return request

    def _shown(self, answer: Any) -> Shown:
        parts = [part for item in answer.output if item.type == "message" for part in item.content]
        texts = [part for part in parts if part.type == "output_text"]
        calls = [item for item in answer.output if item.type == "function_call"]
        thoughts = [each.text for item in answer.output if item.type == "reasoning" for each in item.summary]
        reason = answer.incomplete_details.reason if answer.incomplete_details else ""
        usage = answer.usage
        return Shown(
            text="".join(part.text for part in texts),
            thought="".join(thoughts),
            calls=tuple((call.name, json.loads(call.arguments)) for call in calls),
            sources=tuple(
                (note.url, note.title, part.text[note.start_index : note.end_index])
                for part in texts
                for note in part.annotations
            ),
            refusal="".join(part.refusal for part in parts if part.type == "refusal"),
            finish=reason or answer.status,
            usage=(
                usage.input_tokens,
                usage.input_tokens_details.cached_tokens,
                usage.output_tokens,
                usage.output_tokens_details.reasoning_tokens,
            ),
            turn=answer,
            ids=tuple(call.call_id for call in calls),
        )
