"""Answers with HTTP status 200 in which a provider refuses the content, in place of which another model is called."""

from collections.abc import Callable

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.service.operations.generate.text_request_encoder import GenerationCall
from umg_grpc.service.pipeline.token_estimates import estimate_tokens
from umg_grpc.v1 import pb

REFUSALS = frozenset({pb.FINISH_REASON_CONTENT_FILTER, pb.FINISH_REASON_REFUSAL, pb.FINISH_REASON_RECITATION})
Check = Callable[[pb.StreamGenerateResponse], bool]


def is_refusal(response: pb.GenerateResponse) -> bool:
    """Return whether the provider's filter or the model refused the request, or all that was generated."""
    if response.block_reason:
        return True
    return bool(response.candidates) and all(each.finish_reason in REFUSALS for each in response.candidates)


def refused_content(admitted: GenerationCall, usage: pb.Usage | None) -> UmgError:
    """Return the error for a refused request. `usage`: tokens for which the provider charges; None if it reported none,
    so that they are estimated.
    """
    if usage is None:
        estimate = estimate_tokens(admitted.full_request, admitted.model.described)
        usage = pb.Usage(input_tokens=estimate.input_tokens, estimated=True)
    message = "the provider refused the content of the request; change it"
    error = UmgError(pb.ERROR_REASON_CONTENT_BLOCKED, message).with_failure(Failure.CALLER)
    return error.with_usage(usage)


def refusing(is_without_output: Check, admitted: GenerationCall) -> Check:
    """Return a check of the messages of a stream up to its first output, which raises UmgError(CONTENT_BLOCKED) for a
    refusal of the content.
    """
    reported: pb.Usage | None = None

    def check(message: pb.StreamGenerateResponse) -> bool:
        nonlocal reported
        for event in message.events:
            if event.HasField("usage"):
                reported = event.usage
        ended = [event.finished for event in message.events if event.HasField("finished")]
        if ended and all(each.finish_reason in REFUSALS or each.block_reason for each in ended):
            raise refused_content(admitted, reported)
        return is_without_output(message)

    return check
