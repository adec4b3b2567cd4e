"""Guards of text calls: continue with the request and the response as the guards have changed them."""

from functools import partial

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS
from umg_grpc.service.guardrails.guard_driver import REPLACED_FIELDS, Checked, GuardRun, without_source
from umg_grpc.service.guardrails.guarded_bodies import found_rest
from umg_grpc.service.guardrails.guarded_text_stream import GuardedTextStream
from umg_grpc.service.guardrails.refused_text_responses import refused_response
from umg_grpc.service.operations.generate.streamed_text_responses import estimate_seen
from umg_grpc.service.operations.generate.text_request_encoder import GenerationCall
from umg_grpc.service.operations.generate.text_response_finishing import ResponseCompletion
from umg_grpc.service.pipeline.stream_pipeline import StreamedResponse
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS


def take_request(admitted: GenerationCall, checked: Checked[pb.GenerateRequest]) -> None:
    """Continue with the request that the guards have changed; its changed fields are encoded in the caller's body."""
    request = checked.message
    notes = admitted.notes.with_edited(*sorted(checked.changed.intersection(REPLACED_FIELDS)))
    if (
        request.HasField("source")
        and request.HasField("thread")
        and (codec := TEXT_FORMATS.get(request.source.format)) is not None
    ):
        # the thread is stored with the body of its first call
        request.source.body = codec.encode_request(request, request.model, admitted.stream, NO_QUIRKS, notes).body
    admitted.request, admitted.notes, admitted.sealed_messages = request, notes, ()


async def guard_response(
    admitted: GenerationCall, completion: ResponseCompletion, response: pb.GenerateResponse, run: GuardRun
) -> None:
    """Check a completed response, which may be a provider's own body. If a guard has changed or refused it, complete it
    again. `completion`: a new one of the same attempt, whose `begin` was not called.
    """
    completion.begin(passthrough=response.HasField("source"))
    whole = await completion.read(response)
    if whole is response and completion.passthrough:
        message = "the provider's response cannot be read, so that no guard can check it"
        raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.AMBIGUOUS)
    if completion.passthrough:
        encode = TEXT_FORMATS[response.source.format].encode_response
        run.rest = await found_rest(response.source.body, lambda: encode(without_source(whole), admitted.request))
    try:
        checked = await run.check(whole)
    except UmgError as error:
        if error.reason != pb.ERROR_REASON_GUARD_REFUSED:
            raise
        checked = Checked(refused_response(whole, error), frozenset({"candidates"}))
    if checked.changed:
        response.CopyFrom(checked.message)
        response.ClearField("source")
        response.ClearField("dropped_fields")
        admitted.settle = completion.store_whole
        if (waiting := completion.complete_whole(response)) is not None:
            await waiting


def guarded_stream(
    streamed: StreamedResponse[pb.StreamGenerateResponse],
    admitted: GenerationCall,
    completion: ResponseCompletion,
    run: GuardRun,
) -> GuardedTextStream:
    """Return a streamed response with its guards around it."""
    candidates = max(1, admitted.request.candidate_count)
    return GuardedTextStream(streamed, run, candidates, partial(estimate_seen, completion))
