"""Whether chunks say anything yet: the first often has nothing but a role."""

import re

import msgspec
from msgspec import Raw

from umg_grpc.wire.preamble import are_nothing, preamble

# Of a chunk, what is no answer; some send usage from the start on, or what a filter found in the prompt.
AROUND = frozenset(
    {"id", "object", "created", "model", "system_fingerprint", "service_tier", "provider", "usage", "obfuscation"}
    | {"prompt_filter_results", "x_groq", "timings"}
)
CHOICE = frozenset({"index", "delta", "content_filter_results"})
ROLE = frozenset({"role"})

_CHUNK = msgspec.json.Decoder(dict[str, Raw])
_CHOICES = msgspec.json.Decoder(list[dict[str, Raw]])
_DELTA = msgspec.json.Decoder(dict[str, Raw] | None)


def _says_nothing(data: bytes) -> bool:
    chunk = _CHUNK.decode(data)
    choices = chunk.pop("choices", None)
    if choices is None or not are_nothing(chunk, AROUND):
        return False
    for choice in _CHOICES.decode(choices):
        delta = _DELTA.decode(choice.get("delta", b"null"))
        if not are_nothing(choice, CHOICE) or not are_nothing(delta or {}, ROLE):
            return False
    return True


is_preamble = preamble(_says_nothing, re.compile(rb'"(?:content|reasoning_content|arguments)": ?"[^"]'))
