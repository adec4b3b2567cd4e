"""Bodies that video vendors get for bodies of callers."""

from typing import Any

import msgspec

from umg_grpc.service.pipeline import schema_validation
from umg_grpc.v1 import pb
from umg_grpc.wire.video import ENTRY_FORMATS, video_protocol
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest
from umg_grpc.wire.video.provider_task_types import Submission
from umg_grpc.wire.video.submission_encoding import encode_submission
from umg_grpc.wire.video.video_request_checks import check

XAI = "https://api.x.ai/v1"


def sent(
    protocol: str, model: str, entry: "pb.VideoEntry.ValueType", body: dict[str, Any], kind: str = ""
) -> tuple[dict[str, Any], ProviderRequest]:
    """Return the body that the vendor of a model gets for a caller's body, and the whole request."""
    path = {"model": model, "kind": kind}
    given = ENTRY_FORMATS[entry].decode_create(msgspec.json.encode({"model": model, **body}), path)
    schema_validation.check(given)
    checked = check(given, protocol, model)
    url = XAI if model.startswith("grok-") else "https://vendor.example"
    submission = Submission(task_id="task_1", model=model, request=checked)
    request = encode_submission(video_protocol(protocol, url), submission)
    decoded: dict[str, Any] = msgspec.json.decode(request.body)
    return decoded, request
