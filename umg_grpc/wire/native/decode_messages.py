"""Decoding of the conversation in a native request: `contents` and `systemInstruction`."""

from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import check_address
from umg_grpc.wire.core.json_decoding import invalid, missing
from umg_grpc.wire.core.unknown_role_messages import RawTurns, append_opaque_turn
from umg_grpc.wire.native import schema
from umg_grpc.wire.native.content_parts import decode_part, is_own_file
from umg_grpc.wire.native.proto_json_normalization import Notes
from umg_grpc.wire.native.tool_result_pairing import pair_results

TURN_ROLES = {"user": pb.ROLE_USER, "model": pb.ROLE_ASSISTANT, "function": pb.ROLE_TOOL, "tool": pb.ROLE_TOOL}


def decode_contents(contents: list[schema.Content], request: pb.GenerateRequest, notes: Notes) -> None:
    """Decode each element of `contents` into a message; an unknown role makes it raw JSON. Only a message of the model
    may have no parts: clients send back responses without them. Raise UmgError with the path of the field.
    """
    raw_turns: RawTurns | None = None
    for index, content in enumerate(contents):
        role = TURN_ROLES.get((content.role or "user").lower())
        if role is None:
            raw_turns = raw_turns or RawTurns(request.source, "contents")
            append_opaque_turn(request, notes.request, raw_turns[index], content.role or "", f"contents[{index}].role")
            continue
        if not content.parts and role != pb.ROLE_ASSISTANT:
            raise missing(f"contents[{index}].parts")
        message = request.messages.add(role=role)
        for position, part in enumerate(content.parts or ()):
            _decode(part, message.parts.add(), f"contents[{index}].parts[{position}]", notes)
    pair_results(request.messages)


def decode_instructions(content: schema.Content, request: pb.GenerateRequest, notes: Notes) -> None:
    """Decode `systemInstruction` into `request.instructions`. Raise UmgError with the path of the field."""
    for position, part in enumerate(content.parts or ()):
        _decode(part, request.instructions.add(), f"systemInstruction.parts[{position}]", notes)


def _decode(part: schema.Part, target: pb.Part, at: str, notes: Notes) -> None:
    kinds = [name for name in schema.PART_KINDS if _is_given(getattr(part, name))]
    if len(kinds) > 1:
        raise invalid(at, f"a part has one kind of content, this one has {' and '.join(kinds)}; send several parts")
    decode_part(part, target, at)
    if _is_given(part.video_metadata):
        notes.record_uncarried("videoMetadata")
    _check_file(part.file_data, f"{at}.fileData")
    if part.function_response is not None:
        for index, shown in enumerate(part.function_response.parts or ()):
            _check_file(shown.file_data, f"{at}.functionResponse.parts[{index}].fileData")
        for name in ("will_continue", "scheduling"):
            if _is_given(getattr(part.function_response, name)):
                notes.record_uncarried(f"functionResponse.{'willContinue' if name == 'will_continue' else name}")


def _check_file(file: schema.ProviderFile | None, at: str) -> None:
    if file is not None and file.file_uri and ("://" in file.file_uri or not is_own_file(file.file_uri)):
        check_address(file.file_uri, f"{at}.fileUri", "bytes go into `inlineData`")


def _is_given(value: object) -> bool:
    return bytes(value) not in (b"", b"null") if isinstance(value, Raw) else value is not None
