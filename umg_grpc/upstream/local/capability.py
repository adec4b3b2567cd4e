"""What the small models can do. Not in the package itself, which their child process loads."""

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb


def refuse_beyond_text(request: pb.GenerateRequest) -> None:
    """Raises UmgError(UNSUPPORTED_FIELD) for what our small models cannot do: their server would ignore tools in
    silence, and fail on media.
    """
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
