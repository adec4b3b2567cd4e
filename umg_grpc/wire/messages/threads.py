"""Message threads (beta `message-threads-2026-08-12`): the field, and a conversation kept as JSON of this format.

A kept conversation is what a caller who keeps it himself would send again: `system`, `tools`, and the turns with the
answer behind them.
"""

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.json import ABSENT, given, invalid, missing, parse
from umg_grpc.wire.messages import schema
from umg_grpc.wire.messages.marks import without_marks

CREATE, CONTINUE = "create", "continue"
OF_THE_THREAD = ("system", "tools")
"""Fields that a thread keeps from the request that began it."""


class _Answer(Struct):
    content: Raw = ABSENT


def decode_thread(asked: schema.MessagesRequest, request: pb.GenerateRequest) -> None:
    """Fill `request.thread`. Raise UmgError naming the field. A type that is not known here is for a provider of the
    format alone.
    """
    thread = asked.thread
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
                if getattr(asked, name):
                    raise invalid(name, "the thread keeps it from its first request; leave it out")
            request.thread.previous_response_id = thread.previous_message_id
        case _:
            request.source.indispensable_fields.append("thread")


def continues(asked: schema.CountRequest) -> bool:
    """Return whether the request continues a thread, so that it may bring no new turns."""
    return isinstance(asked, schema.MessagesRequest) and asked.thread is not None and asked.thread.type == CONTINUE


def without_thread(body: bytes) -> bytes:
    """Return the body, which neither begins a thread nor continues one."""
    fields = parse(dict[str, Raw], body)
    fields.pop("thread", None)
    return msgspec.json.encode(fields)


def beginning_thread(body: bytes) -> bytes:
    """Return the body, which begins a thread."""
    return msgspec.json.encode(parse(dict[str, Raw], body) | {"thread": {"type": CREATE}})


def whole_body(body: bytes, kept: bytes) -> bytes:
    """Return the body with the kept conversation before its own turns, and without a thread."""
    fields, earlier = parse(dict[str, Raw], body), parse(dict[str, Raw], kept)
    turns = [*parse(list[Raw], earlier.pop("messages"), "messages"), *parse(list[Raw], fields["messages"], "messages")]
    fields.pop("thread", None)
    return msgspec.json.encode({**fields, **earlier, "messages": turns})


def kept_conversation(body: bytes, answer: bytes) -> bytes:
    """Return what is kept of a whole conversation and the body of its answer. The marks for the prompt cache of its
    turns are left out: a request takes four.
    """
    fields = parse(dict[str, Raw], body)
    turns, content = parse(list[Raw], without_marks(fields["messages"])), parse(_Answer, answer).content
    if given(content) and bytes(content) not in (b"[]", b'""'):
        turns.append(Raw(msgspec.json.encode({"role": "assistant", "content": content})))
    kept = {name: fields[name] for name in OF_THE_THREAD if given(fields.get(name, ABSENT))}
    return msgspec.json.encode({**kept, "messages": turns})


def countable(kept: bytes) -> bytes:
    """Return a kept conversation as the body of a counting call, which the format decodes."""
    return msgspec.json.encode(parse(dict[str, Raw], kept) | {"model": "-"})
