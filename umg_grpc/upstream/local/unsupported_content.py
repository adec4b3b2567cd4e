"""Check of requests to the small local models. It is apart because their child process imports the package."""

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb


def reject_unsupported_content(request: pb.GenerateRequest) -> None:
    """Raise UmgError(UNSUPPORTED_FIELD) for tools (the server would ignore them) and media (it would fail)."""
    if request.tools:
        raise UmgError(
            pb.ERROR_REASON_UNSUPPORTED_FIELD, f"{request.model} cannot call tools; leave them out", field="tools"
        )
    for position, message in enumerate(request.messages):
        for place, part in enumerate(message.parts):
            if part.HasField("media"):
                field = f"messages[{position}].parts[{place}]"
                text = f"{field}: {request.model} reads text only"
                raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, text, field=field)
