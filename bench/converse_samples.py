"""Sample answers of Bedrock's Converse for the benchmark of translation: a format that providers alone have."""

import struct
import zlib

import msgspec

from bench.codec_samples import REPLY, Json, ProviderSamples, Stream, words


def converse_samples() -> ProviderSamples:
    """Return the samples of the format."""
    return ProviderSamples(answer=_answer(), stream=_stream)


def _end(output_tokens: int) -> Json:
    usage = {"inputTokens": 31, "outputTokens": output_tokens, "totalTokens": 31 + output_tokens}
    return {"usage": usage, "metrics": {"latencyMs": 1551}}


def _answer() -> bytes:
    message: Json = {"role": "assistant", "content": [{"text": REPLY}]}
    return msgspec.json.encode({"output": {"message": message}, "stopReason": "end_turn", **_end(100)})


def _stream(count: int) -> Stream:
    block: Json = {"contentBlockIndex": 0}
    stopped: Json = {"stopReason": "end_turn"}
    last = (("contentBlockStop", block), ("messageStop", stopped), ("metadata", _end(100)))
    return Stream(
        _frame("messageStart", {"role": "assistant"}),
        [_frame("contentBlockDelta", {**block, "delta": {"text": word}}) for word in words(count)],
        b"".join(_frame(kind, payload) for kind, payload in last),
    )


def _frame(kind: str, payload: Json) -> bytes:
    """Return an event as a frame of AWS event streams (smithy.io, "Amazon Event Stream Specification")."""
    stated = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(struct.pack("!B", len(name)) + name.encode() + _text(value) for name, value in stated.items())
    body = msgspec.json.encode(payload)
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    head = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + body
    return head + struct.pack("!I", zlib.crc32(head))


def _text(value: str) -> bytes:
    return struct.pack("!BH", 7, len(value)) + value.encode()
