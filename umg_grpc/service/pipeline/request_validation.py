"""Validation of requests by the rules in the .proto files, beside the calls in flight."""

import asyncio

from google.protobuf.message import Message

from umg_grpc.service.pipeline.schema_validation import check

_COMPILED_KINDS = set[str]()
"""Names of the types of messages whose rules are compiled."""


async def validate(message: Message) -> None:
    """Check a message as `check` does. The first message of a type is checked in a thread: its rules are compiled, and
    for the first type of a process the library is loaded, which takes 60 ms that other calls do not wait for.
    """
    kind = message.DESCRIPTOR.full_name
    if kind in _COMPILED_KINDS:
        check(message)
        return
    try:
        await asyncio.to_thread(check, message)
    finally:
        _COMPILED_KINDS.add(kind)
