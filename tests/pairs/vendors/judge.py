"""Strict judge of vendors: refuses the requests that a vendor refuses, in the vendor's words."""

import json
from collections.abc import Callable, Mapping

from tests.pairs.vendors.refusal import Refusal, Rules, VendorCall
from tests.pairs.vendors.rules import (
    anthropic,
    chat_vendors,
    gemini,
    messages_vendors,
    mistral,
    openai,
    responses_vendors,
)

RULES: Mapping[tuple[str, str], Callable[[VendorCall], Rules]] = {
    **{(vendor, "chat"): rules for vendor, rules in chat_vendors.CHAT.items()},
    **{(vendor, "chat"): openai.chat for vendor in ("openai", "azure")},
    **{(vendor, "responses"): openai.responses for vendor in ("openai", "azure")},
    **{(vendor, "messages"): anthropic.messages for vendor in ("anthropic", "bedrock-anthropic")},
    **{(vendor, "native"): gemini.native for vendor in ("gemini", "vertex")},
    ("mistral", "chat"): mistral.chat,
    ("mistral", "embeddings"): mistral.embeddings,
    **{(vendor, "messages"): rules for vendor, rules in messages_vendors.MESSAGES.items()},
    **{(vendor, "responses"): rules for vendor, rules in responses_vendors.RESPONSES.items()},
    **{(vendor, "embeddings"): openai.embeddings for vendor in ("openai", "azure")},
    ("jina", "embeddings"): chat_vendors.jina,
    ("voyage", "embeddings"): chat_vendors.voyage,
}
"""Vendor and protocol -> its rules."""


def refusal(vendor: str, model: str, protocol: str, body: bytes, headers: Mapping[str, str]) -> Refusal | None:
    """Return the refusal of a request by a vendor; None for one that the vendor serves.

    `model`: the vendor's own id; `headers`: those of the request, by lower-case name.
    """
    rules = RULES.get((vendor, protocol))
    parsed = json.loads(body)
    found = rules(VendorCall(vendor, model, protocol, parsed, headers, body)) if rules is not None else ()
    return next(iter(found), None)
