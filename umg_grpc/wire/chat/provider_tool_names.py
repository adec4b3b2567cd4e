"""Tool names and call ids as providers of the chat and the responses format accept them."""

import base64
import hashlib
import re

from umg_grpc.v1 import pb
from umg_grpc.wire.core.tool_call_id_pairing import original_id
from umg_grpc.wire.core.tool_name_conversion import NameRules, ToolNames

MAX_CHARACTERS = 64
_NINE = re.compile(r"[a-zA-Z0-9]{9}")

_NAME_RULES = NameRules(
    re.compile(r"[a-zA-Z0-9_-]{1,64}"), illegal=re.compile(r"[^a-zA-Z0-9_-]"), max_characters=MAX_CHARACTERS
)


def tool_names(request: pb.GenerateRequest) -> ToolNames:
    """Return the mapping between the caller's tool names and a provider's, for one request and its response."""
    return ToolNames(request, _NAME_RULES)


def provider_id(call_id: str) -> str:
    """Return a call id for a provider. One that is too long is cut and ends with a digest of the whole id."""
    call_id = original_id(call_id)
    if len(call_id) <= MAX_CHARACTERS:
        return call_id
    digest = hashlib.sha256(call_id.encode()).hexdigest()[:32]
    return f"{call_id[: MAX_CHARACTERS - 33]}_{digest}"


def nine_character_id(call_id: str) -> str:
    """Return a call id for a provider whose ids have nine letters and digits: the id if valid, else its digest."""
    if _NINE.fullmatch(call_id):
        return call_id
    return base64.b32encode(hashlib.sha256(call_id.encode()).digest())[:9].decode()
