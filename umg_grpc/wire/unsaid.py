"""What a request says beside its prompt and a provider of another format cannot be told."""

from collections.abc import Sequence

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.json import echo
from umg_grpc.wire.report import Report, untranslatable
from umg_grpc.wire.unknown import note_nested

# Of `include`: what answers have anyway, where there is any. Reasoning state is also kept here for those who do not
# bring it back.
GIVEN_ANYWAY = frozenset(
    {
        "reasoning.encrypted_content",
        "message.output_text.logprobs",
        "web_search_call.action.sources",
        "web_search_call.results",
    }
)
# Headers that ask for something; others only say in whose words a body is.
TELLING_HEADERS = frozenset({"anthropic-beta", "openai-beta"})


def note_unsaid(
    request: pb.GenerateRequest, report: Report, *, indispensable: Sequence[str], unsayable: Sequence[str]
) -> None:
    """Reports the fields of `unsayable` that say something, those that only the source document holds, and those that
    nobody knows. Raises UmgError(UNTRANSLATABLE) for one of `indispensable`, without which the answer would be another.
    """
    said = {field.name for field, _ in request.ListFields()}
    for field in [*request.source.indispensable_fields, *(field for field in indispensable if field in said)]:
        raise untranslatable(echo(field), "this model's provider cannot be told; leave it out or choose another model")
    for field in [*request.source.uncarried_fields, *(field for field in unsayable if field in said)]:
        if not _is_done_anyway(field, request):
            report.drop(field)
    for name in TELLING_HEADERS & request.source.headers.keys():
        report.drop(name)
    note_nested(request.source, report)


def refuse_several_answers(request: pb.GenerateRequest) -> None:
    """For formats whose providers make one answer. Raises UmgError(UNTRANSLATABLE)."""
    if request.candidate_count > 1:
        message = "`candidate_count`: this model's provider makes one answer; ask several times"
        raise UmgError(pb.ERROR_REASON_UNTRANSLATABLE, message, field="candidate_count")


def _is_done_anyway(field: str, request: pb.GenerateRequest) -> bool:
    if field == "truncation":
        return request.truncation == "disabled"
    return field == "include" and GIVEN_ANYWAY.issuperset(request.include)
