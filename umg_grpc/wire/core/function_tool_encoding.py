"""Function tools and tool choices as the chat and the responses format encode them, in both directions."""

from collections.abc import Sequence

from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, NonEmpty, invalid, is_present, json_object, parse

CHOICE_MODES = {
    "auto": pb.TOOL_CHOICE_MODE_AUTO,
    "none": pb.TOOL_CHOICE_MODE_NONE,
    "required": pb.TOOL_CHOICE_MODE_REQUIRED,
}
CHOICE_NAMES = {value: name for name, value in CHOICE_MODES.items()} | {pb.TOOL_CHOICE_MODE_VALIDATED: "auto"}


class FunctionDefinition(Struct):
    """Function tool: the member `function` of a tool, or the tool itself."""

    name: NonEmpty
    description: str | None = None
    parameters: Raw = ABSENT_MEMBER
    strict: bool | None = None


def decode_function(function: FunctionDefinition, target: pb.FunctionTool, at: str) -> None:
    """Decode a function (path `at`) into `target`. Raise UmgError(INVALID_FIELD) for parameters that are no object."""
    target.name = function.name
    if function.description is not None:
        target.description = function.description
    if is_present(function.parameters):
        target.parameters_json = json_object(function.parameters, f"{at}.parameters")
    if function.strict is not None:
        target.strict = function.strict


def decode_choice_mode(raw: Raw, choice: pb.ToolChoice) -> bool:
    """Decode a tool choice that is a string (`none`, `auto`, `required`) into `choice`. Return False, and decode
    nothing, for any other JSON value. Raise UmgError(INVALID_FIELD) for an unknown string.
    """
    if not bytes(raw).startswith(b'"'):
        return False
    name = parse(str, raw, "tool_choice")
    if name not in CHOICE_MODES:
        message = "expected `none`, `auto`, `required` or an object that names a tool; send one of them"
        raise invalid("tool_choice", message)
    choice.mode = CHOICE_MODES[name]
    return True


def encode_named_choice(choice: pb.ToolChoice, named: Sequence[object], *, nests: bool) -> object:
    """Return the value of `tool_choice`: a mode, one tool that must be called, or the allowed tools; None for the
    default. `named`: the chosen tools as objects of the format. `nests`: whether allowed tools are in a member
    `allowed_tools`.
    """
    if not named:
        return None if choice.names else CHOICE_NAMES.get(choice.mode)
    if choice.mode == pb.TOOL_CHOICE_MODE_NONE:
        return "none"
    is_required = choice.mode == pb.TOOL_CHOICE_MODE_REQUIRED
    if len(named) == 1 and is_required and not choice.allowed_tools:
        return named[0]
    allowed = {"mode": "required" if is_required else "auto", "tools": named}
    return {"type": "allowed_tools", **({"allowed_tools": allowed} if nests else allowed)}
