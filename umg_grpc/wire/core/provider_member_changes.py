"""Members of an encoded body that a provider rejects or names differently: removed or renamed, and reported."""

import re
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.dropped_field_losses import LOSS_MEMBERS
from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.wire.dropped_fields_report import Report

Member = TypeVar("Member", object, Raw)

WITHOUT_EFFECT: Mapping[str, tuple[object, ...]] = {
    "store": (False,),
    "temperature": (1,),
    "top_p": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "parallel_tool_calls": (True,),
    "service_tier": ("auto", "default"),
    "tool_choice": ("auto", "none"),
    "tools.type": ("custom",),
    "tools.external_web_access": (True,),
    "truncation": ("disabled",),
    "stream_options": ({"include_usage": True}, {}),
    "generationConfig.presencePenalty": (0,),
    "generationConfig.frequencyPenalty": (0,),
    "generationConfig.responseLogprobs": (False,),
}
"""Member of a body -> values that mean the same as its absence, so that leaving them out is no loss."""
EMPTY_VALUES: tuple[object, ...] = (None, "", [], {})
_WORD = re.compile("[A-Z]")


def fit_members(fields: dict[str, Member], quirks: Quirks, protocol: str, report: Report) -> None:
    """Rename and remove members of a body of a format (`protocol`), in place, by `renames`, `accepts` and `rejects` of
    the quirks. A removed member without a canonical field is reported by its own name.
    """
    if quirks.accepts is None and quirks.rejects is None and quirks.renames is None:
        return
    if quirks.renames:
        for name, own_name in quirks.renames.items():
            if name in fields:
                fields.setdefault(own_name, fields.pop(name))  # the provider's own name has precedence
    for entry in _refused(fields, quirks):
        path, _, refused_value = entry.partition("=")
        value = _removed(fields, path, refused_value)
        plain = msgspec.json.decode(value) if isinstance(value, Raw) else value
        if value is not None and not is_without_effect(path, plain):
            name = LOSS_MEMBERS[protocol].get(path, path)
            report.forget(name)  # a change of a value that is not sent after all
            report.drop(name)


def _refused(fields: Mapping[str, object], quirks: Quirks) -> Iterator[str]:
    if quirks.accepts is not None:
        yield from [name for name in fields if name not in quirks.accepts]
    if quirks.rejects:
        yield from sorted(quirks.rejects.intersection(fields))
        yield from quirks.nested_rejects


def _removed(fields: dict[str, Member], path: str, refused: str) -> object:
    """Remove the member at a dotted path and return its value; None if there is none. The path covers both spellings in
    native bodies, and each element of a list. `refused`: the only value that is removed; "" for any.
    """
    name, _, rest = path.partition(".")
    name = name if name in fields else _WORD.sub(lambda word: f"_{word[0].lower()}", name)
    if name not in fields:
        return None
    value = fields[name]
    if not rest:
        plain = msgspec.json.decode(value) if refused and isinstance(value, Raw) else value
        return None if refused and plain != refused else fields.pop(name)
    if isinstance(value, Raw):
        edited, found = _without(value, rest, refused)
        if found is not None:
            fields[name] = edited
        return found
    elements = value if isinstance(value, list) else [value]
    removed = [_removed(element, rest, refused) for element in elements if isinstance(element, dict)]
    return next((each for each in removed if each is not None), None)


def _without(raw: Raw, path: str, refused: str) -> tuple[Raw, object]:
    """Return (raw JSON without the member at a dotted path, the removed value or None). `refused`: see `_removed`."""
    if refused.encode() not in bytes(raw):
        return raw, None
    if bytes(raw).startswith(b"["):
        elements = [_without(element, path, refused) for element in msgspec.json.decode(raw, type=list[Raw])]
        edited = Raw(msgspec.json.encode([element for element, _ in elements]))
        return edited, next((found for _, found in elements if found is not None), None)
    if not bytes(raw).startswith(b"{"):
        return raw, None
    members = msgspec.json.decode(raw, type=dict[str, Raw])
    found = _removed(members, path, refused)
    return (raw if found is None else Raw(msgspec.json.encode(members))), found


def is_without_effect(path: str, value: object) -> bool:
    """Return whether a decoded value of the member at a dotted path means the same as its absence."""
    return value in EMPTY_VALUES or value in WITHOUT_EFFECT.get(path, ())
