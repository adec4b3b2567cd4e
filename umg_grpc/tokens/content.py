"""What of a request the model reads, piece by piece: the system prompt, the messages and the tools.

Output parameters, the form of the answer included, are not part of it, nor is what only the provider can see: a prompt
template, a cached prefix, an earlier response.
"""

from collections.abc import Iterable, Iterator
from typing import assert_never

from umg_grpc.v1 import pb

NAME_TOKENS = 1
TOOL_TOKENS = 4  # marks around a declaration, a call, a result
HIDDEN_CHARACTERS = 6  # of state that only the provider can read, base64 of encrypted text, for one token

Piece = str | int | pb.MediaPart
"""A text to be counted, a number of tokens, or a medium whose tokens depend on its bytes."""


def request_pieces(request: pb.GenerateRequest, message_tokens: int) -> Iterator[Piece]:
    """All of it, in order, with so many tokens for the marks of each turn."""
    if request.instructions:
        yield message_tokens
        yield from part_pieces(request.instructions)
    for message in request.messages:
        yield message_tokens
        if message.name:
            yield NAME_TOKENS
            yield message.name
        yield from part_pieces(message.parts)
    for tool in request.tools:
        yield TOOL_TOKENS
        yield from _tool_pieces(tool)


def part_pieces(parts: Iterable[pb.Part]) -> Iterator[Piece]:
    """What is said in the parts. Ids, sources and likelihoods are not: the model does not read them."""
    for part in parts:
        yield from _part_pieces(part)


def _part_pieces(part: pb.Part) -> Iterator[Piece]:
    match part.WhichOneof("kind"):
        case "text":
            yield part.text.text
        case "media":
            yield from _media_pieces(part.media)
        case "reasoning":
            yield from _reasoning_pieces(part)
        case "tool_call":
            yield TOOL_TOKENS
            yield part.tool_call.name
            yield part.tool_call.arguments_json or part.tool_call.text
        case "tool_result":
            yield TOOL_TOKENS
            yield from _result_pieces(part.tool_result)
        case "server_tool_call":
            call = part.server_tool_call
            yield TOOL_TOKENS
            yield call.name
            yield call.input_json or "\n".join(call.queries)
        case "server_tool_result":
            yield TOOL_TOKENS
            yield from _server_result_pieces(part.server_tool_result)
        case "refusal":
            yield part.refusal.text
        case "opaque":
            yield part.opaque.text or part.opaque.json
        case None:
            pass  # a kind newer than this build
        case unhandled:
            assert_never(unhandled)


def _media_pieces(media: pb.MediaPart) -> Iterator[Piece]:
    if media.WhichOneof("source") == "blocks":
        yield from part_pieces(media.blocks.parts)
    else:
        yield media
    if media.kind == pb.MEDIA_KIND_DOCUMENT:
        yield media.title
        yield media.context
        yield media.origin


def _reasoning_pieces(part: pb.Part) -> Iterator[Piece]:
    """The thoughts, of earlier turns too: some providers forget those and some do not. Where only the provider can
    read them their state tells how long they are; beside readable thoughts it is a signature, which nobody reads.
    """
    thoughts = "".join(part.reasoning.texts)
    if thoughts:
        yield thoughts
    elif part.state.data:
        yield len(part.state.data) // HIDDEN_CHARACTERS
    else:
        yield "\n".join(part.reasoning.summaries)


def _result_pieces(result: pb.ToolResult) -> Iterator[Piece]:
    """The parts; where there are none, the JSON whose text form they would be."""
    if result.parts:
        yield from part_pieces(result.parts)
    else:
        yield result.result_json


def _server_result_pieces(result: pb.ServerToolResult) -> Iterator[Piece]:
    for page in result.results:
        yield f"{page.title}\n{page.url}\n{page.page_age}"
        yield len(page.encrypted_content) // HIDDEN_CHARACTERS
    yield result.output_json or result.error_code


def _tool_pieces(tool: pb.Tool) -> Iterator[Piece]:
    """The declaration as the caller wrote it. What a provider tells the model of its own tools is not known: their
    names stand for it.
    """
    match tool.WhichOneof("kind"):
        case "function":
            yield tool.function.name
            yield tool.function.description
            yield tool.function.parameters_json
        case "custom":
            yield tool.custom.name
            yield tool.custom.description
            yield tool.custom.format_json
        case "web_search":
            yield "web_search"
        case "file_search":
            yield "file_search"
        case "opaque":
            yield tool.opaque.json
        case None:
            pass  # a kind newer than this build
        case unhandled:
            assert_never(unhandled)
