"""Rule of requests to generate that the schema does not state: one of several fields has content."""

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb


def check_content(request: pb.GenerateRequest) -> None:
    """Raise UmgError(MISSING_FIELD) for a request that has nothing to respond to."""
    if not (
        request.messages
        or request.instructions
        or request.HasField("continuation")
        or request.thread.previous_response_id
        or request.HasField("prompt_template")
    ):
        text = "messages must not be empty; send at least one"
        raise UmgError(pb.ERROR_REASON_MISSING_FIELD, text, field="messages")
