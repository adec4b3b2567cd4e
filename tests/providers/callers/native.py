"""Native generate with google-genai."""

from dataclasses import dataclass
from typing import Any

from google import genai
from google.genai import types as native_types

from tests.providers.callers.wish import Json, Shown, Wish
from tests.providers.scenarios import TOOLS


@dataclass
class NativeCaller:
    """genai.Client.aio.models."""

    sdk: genai.Client
    model: str

    async def ask(self, wish: Wish) -> Shown:
        contents, config = self._request(wish)
        answer = await self.sdk.aio.models.generate_content(model=self.model, contents=contents, config=config)
        return self._shown([answer])

    async def stream(self, wish: Wish) -> Shown:
        contents, config = self._request(wish)
        stream = await self.sdk.aio.models.generate_content_stream(model=self.model, contents=contents, config=config)
        return self._shown([chunk async for chunk in stream])

    def _request(self, wish: Wish) -> tuple[list[Any], native_types.GenerateContentConfig]:
        roles = {"user": "user", "assistant": "model"}
        contents: list[Any] = [{"role": roles[role], "parts": [{"text": text}]} for role, text in wish.history]
        parts = [native_types.Part(text=wish.text)]
        for media_type, data in (("image/png", wish.image), ("application/pdf", wish.file)):
            if data:
                parts.append(native_types.Part.from_bytes(data=data, mime_type=media_type))
        contents.append(native_types.Content(role="user", parts=parts))
        if wish.before:
            contents.append(wish.before.turn)
            results = [
                native_types.FunctionResponse(id=name or None, name=tool, response={"output": wish.results[tool]})
                for name, (tool, _) in zip(wish.before.ids, wish.before.calls, strict=True)
            ]
            back = [native_types.Part(function_response=result) for result in results]
            contents.append(native_types.Content(role="user", parts=back))
        config: Json = {"max_output_tokens": wish.limit}
        if wish.system:
            config["system_instruction"] = wish.system
        tools: list[Json] = []
        if wish.tools:
            declared = [
                {"name": name, "description": name, "parameters_json_schema": TOOLS[name]} for name in wish.tools
            ]
            tools.append({"function_declarations": declared})
            calling: Json = {"mode": "AUTO" if wish.choice == "auto" else "ANY"}
            if wish.choice not in ("auto", "required"):
                calling["allowed_function_names"] = [wish.choice]
            config["tool_config"] = {"function_calling_config": calling}
        if wish.search:
            tools.append({"google_search": {}})
        if tools:
            config["tools"] = tools
        if wish.thinking:
            config["thinking_config"] = {"include_thoughts": True, "thinking_budget": 1024}
        if wish.schema:
            config |= {"response_mime_type": "application/json", "response_json_schema": wish.schema}
        if wish.stop:
            config["stop_sequences"] = [wish.stop]
        return contents, native_types.GenerateContentConfig(**config)

    def _shown(self, chunks: list[native_types.GenerateContentResponse]) -> Shown:
        candidates = [chunk.candidates[0] for chunk in chunks if chunk.candidates]
        parts = [
            part
            for each in candidates
            if each.content and each.content.parts is not None
            for part in each.content.parts
        ]
        calls = [part.function_call for part in parts if part.function_call]
        text = "".join(part.text for part in parts if part.text and not part.thought)
        last, usage = (candidates[-1] if candidates else native_types.Candidate()), chunks[-1].usage_metadata
        assert usage is not None
        thoughts = usage.thoughts_token_count or 0
        return Shown(
            text=text,
            thought="".join(part.text for part in parts if part.text and part.thought),
            calls=tuple((call.name or "", dict(call.args or {})) for call in calls),
            sources=tuple(_grounded(last.grounding_metadata, [text] if len(chunks) > 1 else _texts(parts))),
            finish=last.finish_reason.value if last.finish_reason else "",
            usage=(
                usage.prompt_token_count or 0,
                usage.cached_content_token_count or 0,
                (usage.candidates_token_count or 0) + thoughts,
                thoughts,
            ),
            image=b"".join(part.inline_data.data or b"" for part in parts if part.inline_data),
            turn=native_types.Content(role="model", parts=parts),
            ids=tuple(call.id or "" for call in calls),
        )


def _texts(parts: list[native_types.Part]) -> list[str]:
    """The text of each part."""
    return [part.text or "" for part in parts]


def _grounded(found: native_types.GroundingMetadata | None, texts: list[str]) -> list[tuple[str, str, str]]:
    """The sources, by the bytes of their segments in the part that each names; a stream is one part."""
    sources = []
    for support in (found.grounding_supports if found else None) or ():
        assert found is not None
        assert found.grounding_chunks is not None
        assert support.segment is not None
        text = texts[support.segment.part_index or 0 if len(texts) > 1 else 0].encode()
        said = text[support.segment.start_index or 0 : support.segment.end_index].decode()
        for place in support.grounding_chunk_indices or ():
            web = found.grounding_chunks[place].web
            assert web is not None
            sources.append((web.uri or "", web.title or "", said))
    return sources
