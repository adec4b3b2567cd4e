"""Report of request fields, other than the prompt, that a provider of another format does not support."""

from collections.abc import Sequence

from umg_grpc import wire
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.caller_field_paths import body_path
from umg_grpc.wire.core.json_decoding import echo
from umg_grpc.wire.core.messages_beta_features import betas_without_field
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.facts_beside_request import RequestNotes

# Values of `include` whose content responses have in any case, if it exists. Reasoning state is also stored in the
# gateway for callers that do not send it back.
IMPLIED_INCLUDES = frozenset(
    {
        "reasoning.encrypted_content",
        "message.output_text.logprobs",
        "web_search_call.action.sources",
        "web_search_call.results",
    }
)
# Fields whose loss changes the response, and that no provider of chat, messages or Converse has.
INDISPENSABLE_FIELDS = ("previous_response_id", "conversation_id", "prompt_template", "cached_content", "thread")
# Other fields that no provider of messages or Converse has, except that the first takes `user`, the second `metadata`.
TEXT_UNSUPPORTED = (
    *("seed", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs"),
    *("max_tool_calls", "verbosity", "image_output", "audio_output", "prediction", "include"),
    *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options_json", "safety_settings", "metadata"),
    *("safety_identifier", "incremental_output", "speech_language", "media_detail", "moderation_json", "user"),
)
# Headers that request a feature; other headers only state the version of the body.
FEATURE_HEADERS = frozenset({"anthropic-beta", "openai-beta"})


def report_unsupported(
    request: pb.GenerateRequest,
    notes: RequestNotes,
    report: Report,
    *,
    indispensable: Sequence[str],
    unsupported: Sequence[str],
) -> None:
    """Report set fields in `unsupported` and fields without a canonical form. Raise UmgError(UNTRANSLATABLE) for a set
    field in `indispensable`, whose loss would change the response, and for unknown fields.
    """
    present = {field.name for field, _ in request.ListFields()}
    if notes.indispensable or not present.isdisjoint(indispensable):
        unknown = [source_path(field, request.source) for field in notes.indispensable]
        field = [*unknown, *(field for field in indispensable if field in present)][0]
        raise untranslatable(
            echo(field), "this model's provider has no equivalent; leave it out or choose another model"
        )
    if notes.uncarried or not present.isdisjoint(unsupported):
        for field in [*notes.uncarried, *(field for field in unsupported if field in present)]:
            if not _has_no_effect(field, request):
                report.drop(field)
    if "source" not in present:
        return  # a request over gRPC in the canonical form
    for name in FEATURE_HEADERS & request.source.headers.keys():
        if betas_without_field(request.source.headers[name]):
            report.drop(name)
    note_nested(request.source, report)


def check_text_request(
    request: pb.GenerateRequest, notes: RequestNotes, report: Report, *, unsupported: Sequence[str]
) -> None:
    """Do as `report_unsupported` for a format whose providers make one response, only of texts, and do not store it.
    `unsupported`: those of `TEXT_UNSUPPORTED` that the format does not have.
    """
    report_unsupported(request, notes, report, indispensable=INDISPENSABLE_FIELDS, unsupported=unsupported)
    reject_several_candidates(request)
    # the gateway itself stores responses of the responses format
    if request.store and request.source.format != "responses":
        report.drop("store")
    if set(request.output_modalities) - {"text"}:
        report.drop("output_modalities")


def note_nested(source: pb.SourceDocument, report: Report) -> None:
    """Report unknown fields below the top level of the caller's body as dropped, since a translation loses them."""
    face = wire.TEXT_FACES.get(source.format)
    if face is not None and face.unknown_fields is not None:
        for path in face.unknown_fields(source.body):
            report.drop(body_path(path, face.wire_path))


def source_path(name: str, source: pb.SourceDocument) -> str:
    """Return a canonical path for a field that only the caller's body (`source`) has. `name`: its path there."""
    face = wire.TEXT_FACES.get(source.format)
    return name if face is None else body_path(name, face.wire_path)


def reject_several_candidates(request: pb.GenerateRequest) -> None:
    """Raise UmgError(UNTRANSLATABLE) for a `candidate_count` above 1, since the provider's format has one candidate."""
    if request.candidate_count > 1:
        message = "`candidate_count`: this model's provider makes one response; call it several times"
        raise UmgError(pb.ERROR_REASON_UNTRANSLATABLE, message, field="candidate_count")


def _has_no_effect(field: str, request: pb.GenerateRequest) -> bool:
    return field == "include" and IMPLIED_INCLUDES.issuperset(request.include)
