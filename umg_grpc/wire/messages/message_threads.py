"""Message threads (beta `message-threads-2026-08-12`): member `thread`, and stored conversations. Each is the JSON body
that a caller without threads would send: `system`, `tools`, and the turns with the last response.
"""

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, invalid, is_present, missing, parse
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.messages import schema
from umg_grpc.wire.messages.passthrough_cache_control import without_marks

CREATE_THREAD, CONTINUE_THREAD = "create", "continue"
OF_THE_THREAD = ("system", "tools")  # fields that a thread takes from its first request


KNOWN_MEMBERS = frozenset(schema.Thread.__struct_fields__)


class _ResponseBody(Struct):
    content: Raw = ABSENT_MEMBER


class _ThreadBody(Struct):
    thread: dict[str, Raw]


def decode_thread(parsed: schema.MessagesRequest, request: pb.GenerateRequest, notes: RequestNotes) -> None:
    """Decode `thread`. Unknown members and types are added to `notes.indispensable`, so that only a provider of this
    format gets the request. Raise UmgError(MISSING_FIELD, INVALID_FIELD) with the path.
    """
    thread = parsed.thread
    if thread is None:
        return
    match thread.type:
        case None:
            raise missing("thread.type")
        case "create":
            request.thread.SetInParent()
        case "continue":
            if not thread.previous_message_id:
                raise missing("thread.previous_message_id")
            for name in OF_THE_THREAD:
                if getattr(parsed, name):
                    raise invalid(name, "the thread keeps it from its first request; leave it out")
            request.thread.previous_response_id = thread.previous_message_id
        case _:  # a mode newer than this build
            notes.indispensable.append("thread")
            return
    members = parse(_ThreadBody, request.source.body).thread
    unknown = [f"thread.{name}" for name, value in members.items() if name not in KNOWN_MEMBERS and is_present(value)]
    notes.indispensable.extend(unknown)  # they may define how long, or which part of, a thread is kept


def continues(parsed: schema.CountRequest) -> bool:
    """Return whether a request continues a stored conversation. Then it may have no messages."""
    return (
        isinstance(parsed, schema.MessagesRequest)
        and parsed.thread is not None
        and parsed.thread.type == CONTINUE_THREAD
    )


def without_thread(body: bytes) -> bytes:
    """Return a JSON body without its member `thread`; all other members are unchanged."""
    fields = parse(dict[str, Raw], body)
    fields.pop("thread", None)
    return msgspec.json.encode(fields)


def with_new_thread(body: bytes) -> bytes:
    """Return a JSON body with `thread` set to begin a new stored conversation; all other members are unchanged."""
    return msgspec.json.encode(parse(dict[str, Raw], body) | {"thread": {"type": CREATE_THREAD}})


def whole_body(body: bytes, stored: bytes) -> bytes:
    """Return a body without `thread`, with the turns, tools and system prompt of the stored conversation before it."""
    fields, earlier = parse(dict[str, Raw], body), parse(dict[str, Raw], stored)
    turns = [*parse(list[Raw], earlier.pop("messages"), "messages"), *parse(list[Raw], fields["messages"], "messages")]
    fields.pop("thread", None)
    return msgspec.json.encode({**fields, **earlier, "messages": turns})


def stored_conversation(body: bytes, response: bytes) -> bytes:
    """Return system prompt, tools, turns and response as JSON, without cache marks in turns: requests may have four."""
    fields = parse(dict[str, Raw], body)
    turns, content = parse(list[Raw], without_marks(fields["messages"])), parse(_ResponseBody, response).content
    if is_present(content) and bytes(content) not in (b"[]", b'""'):
        turns.append(Raw(msgspec.json.encode({"role": "assistant", "content": content})))
    stored = {name: fields[name] for name in OF_THE_THREAD if is_present(fields.get(name, ABSENT_MEMBER))}
    return msgspec.json.encode({**stored, "messages": turns})


def countable(stored: bytes) -> bytes:
    """Return a stored conversation as the body of a token counting call. Its model is a placeholder."""
    return msgspec.json.encode(parse(dict[str, Raw], stored) | {"model": "-"})
