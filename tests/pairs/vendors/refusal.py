"""Refusals of vendors, and the calls that they judge."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.pairs.vendors import sources

Json = dict[str, Any]
LEVELS = ("minimal", "low", "medium", "high", "xhigh", "max")
BASE_LEVELS = frozenset({"low", "medium", "high"})


@dataclass(frozen=True)
class Refusal:
    """Refusal of a vendor: the id of its rule, status, message, name of the field, and literal body."""

    id: str
    status: int
    message: str
    field: str
    body: bytes


@dataclass(frozen=True)
class VendorCall:
    """Call that a vendor judges, with the facts of its sources about the model."""

    vendor: str
    model: str
    protocol: str
    body: Json
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes = b""

    @cached_property
    def flags(self) -> Mapping[str, Any]:
        return sources.flags(self.vendor, self.model)

    @cached_property
    def fact(self) -> sources.Fact:
        return sources.fact("openai" if self.vendor == "azure" else self.vendor, self.model)

    @cached_property
    def messages(self) -> list[Json]:
        found = self.body.get("messages")
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    @cached_property
    def limit(self) -> int | None:
        found = self.flags.get("max_output_tokens")
        return int(found) if found else None

    @cached_property
    def efforts(self) -> tuple[str, ...]:
        """Efforts that have an effect, lowest first, with `none` if it switches reasoning off."""
        if self.fact.efforts is not None:
            return self.fact.efforts
        if levels := self.flags.get("reasoning_effort_levels"):
            return tuple(levels)
        if not self.flags.get("supports_reasoning"):
            return ()
        stated = {name: self.flags.get(f"supports_{name}_reasoning_effort") for name in ("none", *LEVELS)}
        return tuple(name for name, can in stated.items() if can or (can is None and name in BASE_LEVELS))

    def refuse(self, rule: str, **values: Any) -> Refusal:
        """Return the refusal of a rule, with `values` in its text."""
        row = sources.refusals()[rule]
        found = {"model": self.model, "limit": self.limit} | values
        message, at = row.message.format(**found), row.field.format(**found)
        return Refusal(rule, row.status, message, at, _error_body(self, row.status, message, at))


Rules = Iterator[Refusal]


def text_of(content: Any) -> str:
    """Return the text of a message's content."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content or () if isinstance(part, dict))


def _error_body(call: VendorCall, status: int, message: str, at: str) -> bytes:
    """Return the body of a refusal in the vendor's own form."""
    error: Json
    match call.vendor:
        case "anthropic" | "bedrock-anthropic":
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
        case "gemini" | "vertex":
            error = {"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}}
        case "mistral" if message.startswith("{"):
            return message.replace("'", '"').encode()
        case "mistral":
            error = {"object": "error", "message": message, "type": "invalid_request_error", "code": "3051"}
        case "xai":
            error = {"code": "Client specified an invalid argument", "error": message}
        case "voyage":
            error = {"detail": message}
        case _:
            param = at if call.vendor in ("openai", "azure", "openrouter") else None
            error = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}}
    return json.dumps(error).encode()
