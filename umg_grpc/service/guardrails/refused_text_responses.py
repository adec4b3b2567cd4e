"""Responses whose text a guard refuses: they end as if a provider's content filter had cut them off."""

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb


def refused_response(response: pb.GenerateResponse, error: UmgError) -> pb.GenerateResponse:
    """Return the response to a call whose content a guard refused: without content, but with ids, names and usage."""
    refused = pb.GenerateResponse()
    refused.CopyFrom(response)
    refused.ClearField("candidates")
    for index in range(len(response.candidates) or 1):
        finished = refused_end(error)
        refused.candidates.add(
            index=index,
            message=pb.Message(role=pb.ROLE_ASSISTANT),
            finish_reason=finished.finish_reason,
            finish_message=finished.finish_message,
            refusal_category=finished.refusal_category,
        )
    return refused


def refused_end(error: UmgError) -> pb.CandidateFinished:
    """Return the end of a candidate whose text a guard refuses."""
    return pb.CandidateFinished(
        finish_reason=pb.FINISH_REASON_CONTENT_FILTER,
        finish_message=error.message,
        refusal_category=error.metadata.get("category", ""),
    )
