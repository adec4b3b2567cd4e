"""Conversion of a complete response into the events of a stream."""

from collections.abc import Iterator
from typing import assert_never

from umg_grpc.v1 import pb


def response_to_events(response: pb.GenerateResponse) -> pb.StreamGenerateResponse:
    """Return one message of a stream whose events contain the complete response."""
    return pb.StreamGenerateResponse(events=_events(response))


def _events(response: pb.GenerateResponse) -> Iterator[pb.GenerateEvent]:
    started = pb.GenerationStarted(
        response_id=response.response_id,
        model=response.model,
        service_tier=response.service_tier,
        system_fingerprint=response.system_fingerprint,
        stored=response.stored if response.HasField("stored") else None,
    )
    if response.HasField("create_time"):
        started.create_time.CopyFrom(response.create_time)
    if response.HasField("context_management"):
        started.context_management.CopyFrom(response.context_management)
    yield pb.GenerateEvent(started=started)
    for candidate in response.candidates:
        for index, part in enumerate(candidate.message.parts):
            for event in part_to_events(part):
                event.candidate_index, event.part_index = candidate.index, index
                yield event
        finished = _finished(candidate)
        if response.HasField("complete_time"):
            finished.complete_time.CopyFrom(response.complete_time)
        yield pb.GenerateEvent(candidate_index=candidate.index, finished=finished)
    if response.block_reason:
        blocked = pb.CandidateFinished(
            block_reason=response.block_reason, safety_ratings=response.prompt_safety_ratings
        )
        yield pb.GenerateEvent(finished=blocked)
    if response.HasField("usage"):
        yield pb.GenerateEvent(usage=response.usage)


def part_to_events(part: pb.Part) -> Iterator[pb.GenerateEvent]:  # noqa: PLR0912 - one case a kind
    """Yield the start (with content that has no delta), the deltas and the end of one part, without indexes."""
    start = pb.Part()
    start.CopyFrom(part)
    start.ClearField("state")
    deltas: list[pb.GenerateEvent] = []
    match part.WhichOneof("kind"):
        case "text":
            start.text.Clear()
            start.text.SetInParent()
            if part.text.text:
                deltas.append(pb.GenerateEvent(text_delta=part.text.text))
            if part.text.logprobs:
                deltas.append(pb.GenerateEvent(logprobs=pb.LogprobsDelta(logprobs=part.text.logprobs)))
            deltas.extend(pb.GenerateEvent(citation=citation) for citation in part.text.citations)
        case "reasoning":
            start.reasoning.ClearField("texts")
            start.reasoning.ClearField("summaries")
            deltas.extend(
                pb.GenerateEvent(reasoning_delta=text, text_index=index)
                for index, text in enumerate(part.reasoning.texts)
            )  # before their summaries: a format that has only one of the two then omits the summaries
            deltas.extend(
                pb.GenerateEvent(summary_delta=pb.SummaryDelta(summary_index=index, text=text))
                for index, text in enumerate(part.reasoning.summaries)
            )
        case "tool_call":
            if part.tool_call.WhichOneof("input") == "text":
                start.tool_call.text = ""
            else:
                start.tool_call.arguments_json = ""
            if text := part.tool_call.arguments_json or part.tool_call.text:
                deltas.append(pb.GenerateEvent(arguments_delta=text))
        case "refusal":
            start.refusal.Clear()
            start.refusal.SetInParent()
            if part.refusal.text:
                deltas.append(pb.GenerateEvent(refusal_delta=part.refusal.text))
            if part.refusal.logprobs:
                deltas.append(pb.GenerateEvent(logprobs=pb.LogprobsDelta(logprobs=part.refusal.logprobs)))
        case "media" | "tool_result" | "server_tool_call" | "server_tool_result" | "opaque" | "compaction" | None:
            pass  # complete in its start
        case unhandled:
            assert_never(unhandled)
    yield pb.GenerateEvent(part_started=start)
    yield from deltas
    if part.HasField("state"):
        yield pb.GenerateEvent(state=part.state)
    yield pb.GenerateEvent(part_ended=pb.PartEnded())


def _finished(candidate: pb.Candidate) -> pb.CandidateFinished:
    return pb.CandidateFinished(
        finish_reason=candidate.finish_reason,
        stop_sequence=candidate.stop_sequence,
        finish_message=candidate.finish_message,
        safety_ratings=candidate.safety_ratings,
        grounding_json=candidate.grounding_json,
        provider_reason=candidate.provider_reason,
        refusal_category=candidate.refusal_category,
        container_json=candidate.container_json,
    )
