"""Responses with HTTP status 200 in which a provider refuses the content. After one, a fallback model is called."""

from collections.abc import Callable
from typing import Self

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.service.operations.generate.text_request_encoder import GenerationCall
from umg_grpc.service.pipeline.hedged_requests import StatefulCheck
from umg_grpc.service.pipeline.rate_limit_token_estimates import estimate_tokens
from umg_grpc.v1 import pb

REFUSAL_REASONS = frozenset({pb.FINISH_REASON_CONTENT_FILTER, pb.FINISH_REASON_REFUSAL, pb.FINISH_REASON_RECITATION})
Check = Callable[[pb.StreamGenerateResponse], bool]


def is_refusal(response: pb.GenerateResponse) -> bool:
    """Return whether the provider's filter, or the model, refused the request or all of the generated content."""
    if response.block_reason:
        return True
    return bool(response.candidates) and all(each.finish_reason in REFUSAL_REASONS for each in response.candidates)


def refused_content(admitted: GenerationCall, usage: pb.Usage | None) -> UmgError:
    """Return the error for a refused request. `usage`: tokens that the provider charges; None to estimate them."""
    if usage is None:
        estimate = estimate_tokens(admitted.full_request, admitted.model.described)
        usage = pb.Usage(input_tokens=estimate.input_tokens, estimated=True)
    message = "the provider refused the content of the request; change it"
    error = UmgError(pb.ERROR_REASON_CONTENT_BLOCKED, message).with_failure(Failure.CALLER)
    return error.with_usage(usage)


class RefusalCheck(StatefulCheck[pb.StreamGenerateResponse]):
    """Check of a stream's messages up to the first output. It raises UmgError(CONTENT_BLOCKED) if the content was
    refused. If the usage follows the refusal, as in the chat format, it waits for the usage.
    """

    def __init__(self, is_without_output: Check, admitted: GenerationCall) -> None:
        """Create the check. `is_without_output`: returns whether a message contains no output."""
        self._is_without_output, self._admitted = is_without_output, admitted
        self._reported: pb.Usage | None = None
        self._is_refused = False

    def begin(self) -> Self:
        return type(self)(self._is_without_output, self._admitted)

    def __call__(self, message: pb.StreamGenerateResponse) -> bool:
        """Return whether a message contains no output. Raise UmgError for refused content, once the usage is known."""
        for event in message.events:
            if event.HasField("usage"):
                self._reported = event.usage
        ended = [event.finished for event in message.events if event.HasField("finished")]
        if ended and all(each.finish_reason in REFUSAL_REASONS or each.block_reason for each in ended):
            self._is_refused = True
        if self._is_refused and self._reported is not None:
            self.close()
        return self._is_refused or self._is_without_output(message)

    def close(self) -> None:
        if self._is_refused:
            raise refused_content(self._admitted, self._reported)
