"""Chat completions with the SDK of openai."""

import json
from dataclasses import dataclass
from typing import Any

import openai
from openai.lib.streaming.chat import ChatCompletionStreamState

from tests.providers.callers.wish import Json, Shown, Wish, data_url, sendable
from tests.providers.scenarios import TOOLS


@dataclass
class ChatCaller:
    """AsyncOpenAI.chat.completions."""

    sdk: openai.AsyncOpenAI
    model: str

    async def ask(self, wish: Wish) -> Shown:
        return self._shown(await self.sdk.chat.completions.create(**self._request(wish)))

    async def stream(self, wish: Wish) -> Shown:
        state = ChatCompletionStreamState()
        request = self._request(wish) | {"stream": True, "stream_options": {"include_usage": True}}
        async for chunk in await self.sdk.chat.completions.create(**request):
            state.handle_chunk(chunk)
        return self._shown(state.current_completion_snapshot)

    def _request(self, wish: Wish) -> Json:
        messages: list[Any] = [{"role": "system", "content": wish.system}] if wish.system else []
        messages += [{"role": role, "content": text} for role, text in wish.history]
        content: list[Json] = [{"type": "text", "text": wish.text}]
        if wish.image:
            content.append({"type": "image_url", "image_url": {"url": data_url("image/png", wish.image)}})
        if wish.file:
            file = {"filename": "a.pdf", "file_data": data_url("application/pdf", wish.file)}
            content.append({"type": "file", "file": file})
        messages.append({"role": "user", "content": content if len(content) > 1 else wish.text})
        if wish.before:
            messages.append(wish.before.turn)
            for name, (tool, _) in zip(wish.before.ids, wish.before.calls, strict=True):
                messages.append({"role": "tool", "tool_call_id": name, "content": wish.results[tool]})
        request: Json = {"model": self.model, "messages": messages, "max_completion_tokens": wish.limit}
        if wish.tools:
            functions = [{"name": name, "description": name, "parameters": TOOLS[name]} for name in wish.tools]
            request["tools"] = [{"type": "function", "function": function} for function in functions]
            named = {"type": "function", "function": {"name": wish.choice}}
            request["tool_choice"] = wish.choice if wish.choice in ("auto", "required") else named
        if wish.thinking:
            request["reasoning_effort"] = "high"
        if wish.schema:
            described = {"name": "city", "schema": wish.schema, "strict": True}
            request["response_format"] = {"type": "json_schema", "json_schema": described}
        if wish.search:
            request["web_search_options"] = {}
        if wish.stop:
            request["stop"] = [wish.stop]
        return request

    def _shown(self, answer: Any) -> Shown:
        choice, usage = answer.choices[0], answer.usage
        message, text = choice.message, choice.message.content or ""
        notes = [note.url_citation if hasattr(note, "url_citation") else note for note in message.annotations or ()]
        notes = [note if isinstance(note, dict) else note.model_dump() for note in notes]
        notes = [note.get("url_citation", note) for note in notes]
        return Shown(
            text=text,
            thought=getattr(message, "reasoning_content", "") or "",
            calls=tuple((call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()),
            sources=tuple(
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
            turn=sendable(message.to_dict(mode="json"), "index"),
            ids=tuple(call.id for call in message.tool_calls or ()),
        )
