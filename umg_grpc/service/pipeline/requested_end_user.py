"""End user of a call: the id that callers send for a user of their program."""

from functools import cache

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from umg_grpc.knowledge.agent_sessions import end_user_of
from umg_grpc.store.usage_record_table import storable

USER_FIELDS = ("user", "safety_identifier")
"""Fields of requests with the id, the first with a value counts."""


def requested_end_user(request: Message) -> str:
    """Return the end user that a request names, as usage records have it; "" for none."""
    for field in _user_fields(request.DESCRIPTOR):
        if user := getattr(request, field):
            return storable(end_user_of(user))
    return ""


@cache
def _user_fields(descriptor: Descriptor) -> tuple[str, ...]:
    return tuple(field for field in USER_FIELDS if field in descriptor.fields_by_name)
