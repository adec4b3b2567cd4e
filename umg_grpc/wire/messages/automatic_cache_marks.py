"""Automatic prompt cache marks for a body without marks. Providers cache the prompt up to a mark."""

from collections.abc import Iterator

from umg_grpc.wire.core.json_decoding import JsonObject

MARK_FIELD = "cache_control"
MAX_CACHE_MARKS = 4
WITHOUT_CACHE_CONTROL = frozenset({"thinking", "redacted_thinking"})


def is_marked(fields: JsonObject) -> bool:
    """Return whether the caller set a prompt cache mark (`cache_control`) anywhere in the body `fields`."""
    return MARK_FIELD in fields or any(MARK_FIELD in block for block in _blocks(fields))


def mark_prompt(fields: JsonObject) -> None:
    """Mark the last tool, the end of the system prompt and the last user message, in place. Providers accept four."""
    _mark_last(fields.get("tools"))
    if "system" in fields:
        system = fields["system"] = _as_blocks(fields["system"])
        _mark_last(system)
    mark_end(fields)


def mark_end(fields: JsonObject) -> None:
    """Mark the end of the last user message, in place, unless it has a mark or the provider accepts no more marks."""
    users = [message for message in _turns(fields) if message["role"] == "user"]
    if users and (
        sum(MARK_FIELD in block for block in _blocks(fields)) >= MAX_CACHE_MARKS
        or any(MARK_FIELD in block for block in _blocks({"messages": users[-1:]}))
    ):
        return
    for message in users:  # all in one form, since the mark moves on in the next call
        message["content"] = _as_blocks(message["content"])
    if users:
        _mark_last(users[-1]["content"])


def _mark_last(blocks: object) -> None:
    if not isinstance(blocks, list):
        return
    for block in reversed(blocks):
        if isinstance(block, dict) and block.get("type") not in WITHOUT_CACHE_CONTROL:
            block[MARK_FIELD] = {"type": "ephemeral"}
            return


def _as_blocks(content: object) -> object:
    """Return content with a string as one text block, since only a block can have a cache mark."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _turns(fields: JsonObject) -> list[JsonObject]:
    messages = fields.get("messages")
    return [turn for turn in messages if isinstance(turn, dict)] if isinstance(messages, list) else []


def _blocks(fields: JsonObject) -> Iterator[JsonObject]:
    contents = [message["content"] for message in _turns(fields)]
    for blocks in (fields.get("tools"), fields.get("system"), *contents):
        if isinstance(blocks, list):
            yield from (block for block in blocks if isinstance(block, dict))
