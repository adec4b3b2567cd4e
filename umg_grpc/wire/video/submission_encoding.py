"""Encoding of submissions for a provider, within the rules that it has for the model: parameters that the model lacks
are left out and reported, and a value that it does not accept is refused before anything is sent.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.media_models import MediaModel, Medium, is_among, media_model
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.video.provider_protocol import ProviderRequest, VideoProtocol
from umg_grpc.wire.video.provider_task import Submission
from umg_grpc.wire.video.providers.request_encoding import extra_fields, given, is_neutral

MEDIA: dict["pb.VideoMediaKind.ValueType", Medium] = {
    pb.VIDEO_MEDIA_KIND_IMAGE: "image",
    pb.VIDEO_MEDIA_KIND_VIDEO: "video",
    pb.VIDEO_MEDIA_KIND_AUDIO: "audio",
}
VENDORS: dict["pb.VideoEntry.ValueType", Sequence[str]] = {
    pb.VIDEO_ENTRY_D: ("vidD", "umg_video"),
    pb.VIDEO_ENTRY_E_V1: ("vidE", "umg_video"),
    pb.VIDEO_ENTRY_E_3: ("vidE", "umg_video"),
    pb.VIDEO_ENTRY_F: ("vidF", "umg_video"),
    pb.VIDEO_ENTRY_G: ("vidG", "umg_video"),
}
"""Entry that is the API of one vendor -> protocols whose providers have the entry's additional fields."""
NO_LOSS_IF_FALSE = frozenset({"camera_fixed", "watermark", "return_last_frame", "prompt_extend"})
"""Parameters whose false value means the same as their absence, for a model without them."""


def encode_submission(protocol: VideoProtocol, submission: Submission) -> ProviderRequest:
    """Encode a submission in the protocol of its provider, with the report of the parameters that are not sent. Raise
    UmgError for one that the provider does not accept.
    """
    row = media_model(protocol.name, submission.model) or media_model(protocol.name, submission.request.model)
    left_out = list[str]()
    if row is not None and submission.source is None:
        check_values(submission.request, row)
        submission, left_out = _without_unknown(submission, row, _unfit(submission, row))
    if submission.request.parameters.HasField("draft_task_id") and not protocol.takes_drafts:
        raise untranslatable("parameters.draft_task_id", "this model's provider has no drafts; leave it out")
    submission, foreign = _without_foreign(submission, protocol.name)
    request = protocol.encode_create(submission)
    for name in (*left_out, *foreign):
        request.report.drop(f"parameters.{name}")
    return request


def check_values(request: pb.CreateVideoTaskRequest, row: MediaModel) -> None:
    """Raise UmgError(INVALID_FIELD) for the first value of a request that the rules `row` of its vendor refuse."""
    parameters, present = request.parameters, given(request.parameters) - set(row.without)
    for name, allowed in row.values.items():
        if name in present and not is_among(value := getattr(parameters, name), allowed):
            choices = ", ".join(str(choice) for choice in allowed)
            raise _invalid(name, f"{str(value)[:80]!r} is not one of its values on model {request.model}: {choices}")
    for name, (least, most) in row.ranges.items():
        if name in present and not least <= getattr(parameters, name) <= most:
            raise _invalid(name, f"it must be between {least} and {most} on model {request.model}")
    for kind, medium in MEDIA.items():
        count = sum(item.kind == kind for item in parameters.media)
        if count > (most := row.most_media.get(medium, count)):
            raise _invalid("media", f"model {request.model} accepts at most {most} {medium} inputs; send fewer")


def _unfit(submission: Submission, row: MediaModel) -> set[str]:
    """Return the parameters that a neutral model is sent without, since they do not fit others: each may be a default.
    Raise UmgError(INVALID_FIELD) if the caller stated two that do not fit each other.
    """
    parameters, present = submission.request.parameters, given(submission.request.parameters)
    found = set()
    for rule in row.conditions:
        if not {rule.parameter, rule.needs} <= present or not is_among(
            getattr(parameters, rule.parameter), rule.values
        ):
            continue
        value = getattr(parameters, rule.needs)
        if is_among(value, rule.among):
            continue
        if not is_neutral(submission):
            choices = " or ".join(map(str, rule.among))
            stated = f"`{rule.parameter}` {getattr(parameters, rule.parameter)}"
            raise _invalid(rule.needs, f"it must be {choices} with {stated} on model {submission.request.model}")
        found.add(rule.parameter)
    return found


def _invalid(name: str, problem: str) -> UmgError:
    path = f"parameters.{name}"
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, f"`{path}`: {problem}", field=path)


def _without_foreign(submission: Submission, protocol: str) -> tuple[Submission, list[str]]:
    """Return the submission without the additional fields of another vendor's API, and their names. The fields without
    a name in the schema that a vendor's own entry has are those of its vendor.
    """
    text, own = submission.request.parameters.extra_json, VENDORS.get(submission.request.entry, ())
    if not text or not own or protocol in own:
        return submission, []
    request = pb.CreateVideoTaskRequest()
    request.CopyFrom(submission.request)
    request.parameters.extra_json = ""
    return replace(submission, request=request), [f"extra_json.{name}" for name in extra_fields(submission, Report())]


def _without_unknown(submission: Submission, row: MediaModel, unfit: Collection[str]) -> tuple[Submission, list[str]]:
    """Return the submission without the parameters that its model does not have or that are `unfit`, and the names of
    the lost ones.
    """
    unknown = sorted(given(submission.request.parameters).intersection({*row.without, *unfit}))
    if not unknown:
        return submission, []
    request = pb.CreateVideoTaskRequest()
    request.CopyFrom(submission.request)
    lost = list[str]()
    for name in unknown:
        if name not in NO_LOSS_IF_FALSE or getattr(request.parameters, name) is not False:
            lost.append(name)
        request.parameters.ClearField(name)  # type: ignore[arg-type]  # a name from the descriptor
    return replace(submission, request=request), lost
