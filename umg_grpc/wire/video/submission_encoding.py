"""Encoding of submissions by the provider's rules for the model. Parameters that the model lacks are left out and
reported. A value that it does not accept is rejected before anything is sent.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.media_model_rules import (
    FRAME_ROLES,
    Condition,
    MediaModel,
    Medium,
    Value,
    is_among,
    media_model,
)
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.video.provider_protocol_interface import Implied, ProviderRequest, VideoProtocol
from umg_grpc.wire.video.provider_task_types import Submission
from umg_grpc.wire.video.providers.image_roles import inputs_of
from umg_grpc.wire.video.providers.request_encoding import extra_fields, given, is_neutral, refuse_contents
from umg_grpc.wire.video.submission_body_reader import LENGTH_MEMBER, MODEL_DECIDES

MEDIA_NAMES: dict["pb.VideoMediaKind.ValueType", Medium] = {
    pb.VIDEO_MEDIA_KIND_IMAGE: "image",
    pb.VIDEO_MEDIA_KIND_VIDEO: "video",
    pb.VIDEO_MEDIA_KIND_AUDIO: "audio",
}
ENTRY_PROTOCOLS: dict["pb.VideoEntry.ValueType", Sequence[str]] = {
    pb.VIDEO_ENTRY_D: ("vidD", "umg_video"),
    pb.VIDEO_ENTRY_E_V1: ("vidE", "umg_video"),
    pb.VIDEO_ENTRY_E_3: ("vidE", "umg_video"),
    pb.VIDEO_ENTRY_F: ("vidF", "umg_video"),
    pb.VIDEO_ENTRY_G: ("vidG", "umg_video"),
}
"""HTTP API of one vendor -> protocols whose providers accept the additional fields of that API."""
NO_LOSS_IF_FALSE = frozenset({"camera_fixed", "watermark", "return_last_frame", "prompt_extend"})
"""Parameters that can be left out without loss if false, for a model that does not have them."""
FIELD_NOUNS = {"duration_seconds": "length", "generate_audio": "sound"}
"""Parameter or frame -> noun in error messages; names not listed are used as they are."""


def encode_submission(protocol: VideoProtocol, submission: Submission) -> ProviderRequest:
    """Encode a submission in its provider's protocol. Raise UmgError if the provider does not accept it."""
    model = submission.model if protocol.rules_model is None else protocol.rules_model(submission)
    row = media_model(protocol.name, model) or media_model(protocol.name, submission.request.model)
    left_out = list[str]()
    if row is not None and submission.source is None:
        # a neutral model's size may be a default
        implied = {} if protocol.implied is None or is_neutral(submission) else protocol.implied(submission)
        check_values(submission.request, row, implied)
        submission, left_out = _without_unknown(submission, row, _unfit(submission, row, implied))
    if submission.request.parameters.HasField("draft_task_id") and not protocol.takes_drafts:
        raise untranslatable("parameters.draft_task_id", "this model's provider has no drafts; leave it out")
    if not protocol.takes_open_length and has_open_length(submission):
        raise _invalid("duration_seconds", "this model's provider does not select the length; send the seconds")
    submission, foreign = _without_foreign(submission, protocol)
    request = protocol.encode_create(submission)
    for name in (*left_out, *foreign):
        request.report.drop(f"parameters.{name}")
    return request


def check_values(request: pb.CreateVideoTaskRequest, row: MediaModel, implied: Mapping[str, Implied]) -> None:
    """Raise UmgError(INVALID_FIELD) for the first requested or implied value that the vendor's rules reject."""
    parameters, present = request.parameters, given(request.parameters) - set(row.without)
    for name, allowed in row.values.items():
        choices = ", ".join(str(choice) for choice in allowed)
        if name in present and not is_among(value := getattr(parameters, name), allowed):
            raise _invalid(name, f"{str(value)[:80]!r} is not one of its values on model {request.model}: {choices}")
        if name not in present and name in implied and not is_among(implied[name].value, allowed):
            means = f"it means {_noun(name)} {implied[name].value}, and model {request.model} has {choices}; change it"
            raise _invalid(implied[name].by, means)
    for name, (least, most) in row.ranges.items():
        if name in present and not least <= getattr(parameters, name) <= most:
            raise _invalid(name, f"it must be between {least} and {most} on model {request.model}")
    for kind, medium in MEDIA_NAMES.items():
        count = sum(item.kind == kind for item in parameters.media)
        if count > (most := row.most_media.get(medium, count)):
            raise _invalid("media", f"model {request.model} accepts at most {most} {medium} inputs; send fewer")


def _unfit(submission: Submission, row: MediaModel, implied: Mapping[str, Implied]) -> set[str]:
    """Return the parameters to leave out for a neutral model: they conflict with others, and may be defaults."""
    found = set[str]()
    if not row.conditions:
        return found  # most models have none
    neutral = is_neutral(submission)
    values = _values(submission, implied)
    for rule in row.conditions:
        value = values.get(rule.parameter)
        if value is None or not is_among(value, rule.values):
            continue
        other = values.get(rule.needs, None if neutral else rule.default)
        if other is None or is_among(other, rule.among):
            continue
        if not neutral or rule.parameter in FRAME_ROLES:
            raise _conflict(rule, value, submission.request.model)
        found.add(rule.parameter)
    return found


def _values(submission: Submission, implied: Mapping[str, Implied]) -> Mapping[str, Value]:
    inputs = inputs_of(submission, pairs=True)
    found: dict[str, Value] = {name: value.value for name, value in implied.items()}
    found |= {descriptor.name: value for descriptor, value in submission.request.parameters.ListFields()}
    return {**found, "first_frame": inputs.first is not None, "last_frame": inputs.last is not None}


def _conflict(rule: Condition, value: Value, model: str) -> UmgError:
    """Return the error for a condition that does not hold. `value`: value of the condition's parameter."""
    noun, choices = _noun(rule.parameter), " or ".join(str(choice).lower() for choice in rule.among)
    stated = f"{'a ' if rule.parameter in FRAME_ROLES else ''}{noun}" if value is True else f"{noun} {value}"
    if rule.needs in FRAME_ROLES:
        problem = f"model {model} has {stated} only with a {_noun(rule.needs)}; add one or change the {noun}"
        return _invalid("media", problem)
    problem = f"it must be {choices} with {stated} on model {model}; change it or leave out the {noun}"
    return _invalid(rule.needs, problem)


def _noun(name: str) -> str:
    return FIELD_NOUNS.get(name, name.replace("_", " "))


def _invalid(name: str, problem: str) -> UmgError:
    path = f"parameters.{name}"
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, f"`{path}`: {problem}", field=path)


def has_open_length(submission: Submission) -> bool:
    """Return whether the model is to select the length: the caller sent the additional field for it with -1."""
    if f'"{LENGTH_MEMBER}"' not in submission.request.parameters.extra_json:
        return False
    return bytes(extra_fields(submission, Report()).get(LENGTH_MEMBER, b"")) == MODEL_DECIDES


def _without_foreign(submission: Submission, protocol: VideoProtocol) -> tuple[Submission, list[str]]:
    """Return the submission without the additional fields of another vendor's API, and their names."""
    text, own = submission.request.parameters.extra_json, ENTRY_PROTOCOLS.get(submission.request.entry, ())
    if not text or not own or protocol.name in own:
        return submission, []
    request = pb.CreateVideoTaskRequest()
    request.CopyFrom(submission.request)
    is_open, extra = has_open_length(submission), extra_fields(submission, Report())
    refuse_contents(extra)
    request.parameters.extra_json = f'{{"{LENGTH_MEMBER}":-1}}' if is_open else ""
    lost = [name for name in extra if name != LENGTH_MEMBER or not is_open]
    return replace(submission, request=request), [f"extra_json.{name}" for name in lost]


def _without_unknown(submission: Submission, row: MediaModel, unfit: Collection[str]) -> tuple[Submission, list[str]]:
    """Return the submission without `unfit` parameters and those the model lacks, and the names of all removed."""
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
