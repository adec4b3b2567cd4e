"""Messages with the SDK of anthropic."""

import base64
from dataclasses import dataclass
from typing import Any

import anthropic

from tests.providers.callers.wish import Json, Shown, Wish
from tests.providers.scenarios import TOOLS


@dataclass
class MessagesCaller:
    """AsyncAnthropic.messages."""

    sdk: anthropic.AsyncAnthropic
    model: str

    async def ask(self, wish: Wish) -> Shown:
        return self._shown(await self.sdk.messages.create(**self._request(wish)))

    async def stream(self, wish: Wish) -> Shown:
        async with self.sdk.messages.stream(**self._request(wish)) as stream:
            return self._shown(await stream.get_final_message())

    def _request(self, wish: Wish) -> Json:
        messages: list[Any] = [{"role": role, "content": text} for role, text in wish.history]
        content: list[Json] = [{"type": "text", "text": wish.text}]
        for kind, media_type, data in (
            ("image", "image/png", wish.image),
            ("document", "application/pdf", wish.file),
        ):
            if data:
                source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
                content.append({"type": kind, "source": source})
        messages.append({"role": "user", "content": content if len(content) > 1 else wish.text})
        if wish.before:
            messages.append({"role": "assistant", "content": wish.before.turn})
            results = [
                {"type": "tool_result", "tool_use_id": name, "content": wish.results[tool]}
                for name, (tool, _) in zip(wish.before.ids, wish.before.calls, strict=True)
            ]
            messages.append({"role": "user", "content": results})
        request: Json = {"model": self.model, "max_tokens": wish.limit, "messages": messages}
        if wish.system:
            request["system"] = wish.system
        tools: list[Json] = [{"name": name, "description": name, "input_schema": TOOLS[name]} for name in wish.tools]
        if wish.tools:
            named = {"type": "tool", "name": wish.choice}
            request["tool_choice"] = {"auto": {"type": "auto"}, "required": {"type": "any"}}.get(wish.choice, named)
        if wish.search:
            tools.append({"type": "web_search_20250305", "name": "web_search"})
        if tools:
            request["tools"] = tools
        if wish.thinking:
            request["thinking"] = {"type": "enabled", "budget_tokens": 1024 + 1}
        if wish.schema:
            request["output_config"] = {"format": {"type": "json_schema", "schema": wish.schema}}
        if wish.stop:
            request["stop_sequences"] = [wish.stop]
        return request

    def _shown(self, answer: Any) -> Shown:
        texts = [block for block in answer.content if block.type == "text"]
        calls = [block for block in answer.content if block.type == "tool_use"]
        usage, cached = answer.usage, answer.usage.cache_read_input_tokens or 0
        details = usage.output_tokens_details
        return Shown(
            text="".join(block.text for block in texts),
            thought="".join(block.thinking for block in answer.content if block.type == "thinking"),
            calls=tuple((block.name, dict(block.input)) for block in calls),
            sources=tuple(
                (note.url, note.title or "", block.text)
                for block in texts
                for note in block.citations or ()
                if note.type == "web_search_result_location"
            ),
            refusal=(answer.stop_details.explanation or "") if answer.stop_details else "",
            finish=answer.stop_reason or "",
            usage=(
                usage.input_tokens + cached + (usage.cache_creation_input_tokens or 0),
                cached,
                usage.output_tokens,
                details.thinking_tokens if details else 0,
            ),
            turn=[block.to_dict(mode="json") for block in answer.content],
            ids=tuple(block.id for block in calls),
        )
