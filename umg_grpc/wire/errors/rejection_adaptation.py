"""Adaptation to rejections: restrictions (`Quirks`) to encode a request again, if the table of losses allows it."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import NamedTuple

import msgspec

from umg_grpc.knowledge.dropped_field_losses import LOSS_MEMBERS, field_of_member, loss_of
from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.wire.core.provider_member_changes import is_without_effect
from umg_grpc.wire.core.reasoning_effort_order import EFFORT_NAMES
from umg_grpc.wire.errors.rejection_reading import Refused

LIMIT_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""Names of the output limit in chat. A provider that rejects one of them accepts the other."""
BESIDE_REASONING = frozenset({"temperature", "top_p", "logprobs", "top_logprobs"})
"""Members of chat and responses that some models reject only while they reason, without stating this."""
COMMON_EFFORTS = ("none", "low", "medium", "high")
OUTER_EFFORTS = ("minimal", "xhigh", "max")
"""Efforts that many models reject although they accept the common efforts."""
MAX_WORD_CHARACTERS = 40
"""Maximum characters of a rejected value that is left out by itself; no provider has a longer value."""
FORM_QUIRKS = "call_ids", "prefill", "prefix", "reasoning_required", "result_media", "streams_tools", "user_after_tool"
"""Quirks that change only the form of the conversation or of the response."""
OFF_VALUES = ({"type": "disabled"}, "none", False)
REASONING_FIELDS = frozenset(
    {"reasoning", "reasoning.mode", "reasoning.budget_tokens", "reasoning.level", "reasoning.effort"}
)


class Mended(NamedTuple):
    """Restriction with which a rejected request can be sent again."""

    member: str
    """Member of the provider's body, or canonical field, that was rejected."""
    value_class: str
    """Value or limit that was rejected; "" for every value."""
    quirks: Quirks
    lasting: bool
    """Whether it applies to other requests; false if a value had no effect, or the request has the error's message."""


def mend(protocol: str, refused: Iterable[Refused], sent: bytes, written: Quirks) -> list[Mended]:
    """Return restrictions of the model, with which its request is encoded again without the rejected parts; [] if one
    of the parts cannot be adapted. `sent`: the rejected body. `written`: quirks that the operator states, which stay.
    """
    try:
        body = msgspec.json.decode(sent)
    except (ValueError, RecursionError):
        return []
    mended = list[Mended]()
    for each in refused:
        found = _mend_one(protocol, each, body)
        if found is None or _is_written(found.quirks, written):
            return []
        if each.message and msgspec.json.encode(each.message)[1:-1] in sent:
            found = found._replace(lasting=False)
        mended.append(found)
    return mended


def _mend_one(protocol: str, refused: Refused, body: object) -> Mended | None:
    if refused.quirks is not None or not refused.member:
        return _mend_fields(protocol, refused, body)
    member, field = refused.member, LOSS_MEMBERS[protocol][refused.member]
    values = values_at(body, member)
    if not values:
        return None
    quirks = _mending(protocol, refused, member, field, body, values)
    if quirks is not None:
        words = (entry.partition("=")[2] for entry in quirks.rejects or ())
        return Mended(member, _value_class(refused) or next(words, ""), quirks, lasting=True)
    if all(is_without_effect(member, value) for value in values):
        return Mended(member, "", Quirks(rejects=frozenset({member})), lasting=False)
    return None


def _mend_fields(protocol: str, refused: Refused, body: object) -> Mended | None:
    """Return the restriction for a wording about canonical fields. The body must have one of these fields."""
    wanted = set(refused.fields) or {field_of_member(protocol, refused.member)}
    members = [
        member
        for member, field in LOSS_MEMBERS.get(protocol, {}).items()
        if field in wanted and has_value(values_at(body, member), refused)
    ]
    if not members:
        return None
    value_class = _value_class(refused)
    if refused.quirks is not None:
        if all(loss_of(field) == "refuse" for field in wanted) and not _keeps_meaning(refused.quirks):
            return None
        return Mended(members[0], value_class, refused.quirks, lasting=True)
    if refused.limit is not None or refused.kind == "value":
        values = values_at(body, members[0])
        quirks = _mending(protocol, refused, members[0], LOSS_MEMBERS[protocol][members[0]], body, values)
        return None if quirks is None else Mended(members[0], value_class, quirks, lasting=True)
    if any(loss_of(LOSS_MEMBERS[protocol][member]) != "harmless" for member in members):
        return None
    return Mended(", ".join(members), value_class, Quirks(rejects=frozenset(members)), lasting=True)


def _keeps_meaning(quirks: Quirks) -> bool:
    """Return whether a restriction changes only the form of the conversation or response, and leaves nothing out."""
    return any(getattr(quirks, name) is not None for name in FORM_QUIRKS)


def _mending(
    protocol: str, refused: Refused, member: str, field: str, body: object, values: list[object]
) -> Quirks | None:
    """Return the restriction for one rejected member; None if the member may be neither left out nor adapted."""
    if field == "max_output_tokens":
        return _mend_output_limit(refused, member, body, values)
    if field == "stop_sequences":
        return Quirks(max_stop_sequences=refused.limit or 0)
    if field == "reasoning.effort" and refused.kind == "value":
        return _mend_effort(refused, member, values)
    if field == "user" and refused.limit:
        return Quirks(max_user_characters=refused.limit)
    if field == "service_tier" and refused.allowed:
        return Quirks(service_tiers=refused.allowed)
    if field == "messages.reasoning":
        return Quirks(reasoning_content=False) if protocol == "chat" else None
    if field == "messages.role":
        return Quirks(developer=False) if "developer" in values else None
    if field == "tool_choice":
        return None if refused.kind == "member" and "." in member else Quirks(tool_choices="none")
    if field == "response_format":
        forms = [value.get("type") if isinstance(value, dict) else value for value in values]
        return Quirks(schema_dialect="json_object" if "json_schema" in forms else "none")
    if field in {"face_hints", "include_obfuscation"}:
        member = member.partition(".")[0]  # a member that only holds it
    if member in BESIDE_REASONING and has_reasoning(body):
        return Quirks(rejects_beside_reasoning=frozenset({member}))
    if field in REASONING_FIELDS or loss_of(field) == "harmless":
        return _leave_out(refused, member, values)
    return None


def _leave_out(refused: Refused, member: str, values: list[object]) -> Quirks | None:
    words = [value for value in values if isinstance(value, str)] if refused.kind == "value" else []
    if any(len(word) > MAX_WORD_CHARACTERS for word in words):
        return None  # no value that any provider has
    return Quirks(rejects=frozenset(f"{member}={word}" for word in words) or frozenset({member}))


def has_reasoning(body: object) -> bool:
    """Return whether a body of chat or responses enables reasoning, which may then be the cause of a rejection."""
    paths = ("reasoning_effort", "reasoning.effort", "thinking", "enable_thinking")
    return any(value not in OFF_VALUES for path in paths for value in values_at(body, path))


def _mend_output_limit(refused: Refused, member: str, body: object, values: list[object]) -> Quirks | None:
    """Return the restriction for a rejected output limit, which is renamed or lowered but never left out."""
    if refused.limit is not None:
        exceeds = any(isinstance(value, int) and value > refused.limit for value in values)
        return Quirks(max_output_tokens=refused.limit) if refused.limit and exceeds else None
    other = LIMIT_NAMES.get(member)
    if refused.kind != "member" or other is None:
        return None
    if values_at(body, other):
        return Quirks(rejects=frozenset({member}))
    return Quirks(renames={member: other})


def _mend_effort(refused: Refused, member: str, values: list[object]) -> Quirks | None:
    """Return the restriction for a rejected effort, by the provider's list. Without a list, an outer effort is replaced
    by one that almost all models accept; for any other effort, none is sent.
    """
    if not refused.allowed:
        is_outer = all(value in OUTER_EFFORTS for value in values)
        return Quirks(efforts=COMMON_EFFORTS) if is_outer else Quirks(rejects=frozenset({member}))
    efforts = tuple(effort for effort in EFFORT_NAMES if effort in refused.allowed)
    if not efforts or any(value in efforts for value in values):
        return None  # another reason than the value
    return Quirks(efforts=efforts)


def _value_class(refused: Refused) -> str:
    if refused.kind in {"limit", "limit_exclusive"} and refused.limit is not None:
        return f"> {refused.limit}"
    return refused.value if refused.kind in {"value", "role"} else ""


def _is_written(quirks: Quirks, written: Quirks) -> bool:
    return any(
        getattr(quirks, each.name) is not None and getattr(written, each.name) is not None
        for each in fields(Quirks)
        if each.name not in {"rejects", "max_output_tokens"}
    )


def has_value(values: list[object], refused: Refused) -> bool:
    """Return whether a member has the rejected value. If the error names no value, any value counts."""
    return bool(values) and (not refused.value or refused.kind != "role" or refused.value in values)


def values_at(body: object, path: str) -> list[object]:
    """Return the values at a dotted path of a body, in each element of lists. Native members have two spellings."""
    found = [body]
    for name in path.split("."):
        found = [value for each in found for value in _step(each, name)]
    return found


def _step(value: object, name: str) -> list[object]:
    if isinstance(value, list):
        return [found for element in value for found in _step(element, name)]
    if not isinstance(value, Mapping):
        return []
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    spelling = name if name in value else snake
    return [value[spelling]] if spelling in value else []
