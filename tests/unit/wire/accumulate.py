"""Aggregation of a stream of canonical events, independent of the gateway's own."""

from collections.abc import Iterable, MutableSequence

from umg_grpc.v1 import pb


def accumulate(messages: Iterable[pb.StreamGenerateResponse]) -> pb.GenerateResponse:
    """Return the whole response. Fail on events that break the order that `GenerateEvent` defines."""
    response = pb.GenerateResponse()
    open_parts: set[tuple[int, int]] = set()
    candidates: dict[int, pb.Candidate] = {}
    finished: set[int] = set()
    started = False
    for event in (event for message in messages for event in message.events):
        kind = event.WhichOneof("kind")
        assert started != (kind == "started"), "started is the first event, and only once"
        started = True
        if kind == "started":
            response.response_id, response.model = event.started.response_id, event.started.model
            response.service_tier = event.started.service_tier
            response.system_fingerprint = event.started.system_fingerprint
            if event.started.HasField("create_time"):
                response.create_time.CopyFrom(event.started.create_time)
            continue
        if kind == "usage":
            response.usage.CopyFrom(event.usage)
            continue
        if kind == "opaque":
            continue  # not a part of a response
        if event.finished.block_reason:
            response.block_reason = event.finished.block_reason
            response.prompt_safety_ratings.extend(event.finished.safety_ratings)
            continue
        candidate = candidates.setdefault(event.candidate_index, pb.Candidate(index=event.candidate_index))
        candidate.message.role = pb.ROLE_ASSISTANT
        parts, place = candidate.message.parts, (event.candidate_index, event.part_index)
        if kind == "finished":
            assert not {part for owner, part in open_parts if owner == event.candidate_index}, "parts end before it"
            assert event.candidate_index not in finished, "a candidate finishes once"
            finished.add(event.candidate_index)
            _finish(candidate, event.finished)
            if event.finished.HasField("complete_time"):
                response.complete_time.CopyFrom(event.finished.complete_time)
        elif kind == "part_started":
            assert event.candidate_index not in finished, "nothing follows the finish"
            assert event.part_index == len(parts), "parts are numbered as they start"
            parts.append(event.part_started)
            open_parts.add(place)
        else:
            assert place in open_parts, f"{kind} of a part that is not open"
            if kind == "part_ended":
                open_parts.remove(place)
            else:
                _grow(parts[event.part_index], event)
    assert not open_parts, "every part is ended"
    response.candidates.extend(candidate for _, candidate in sorted(candidates.items()))
    return response


def _finish(candidate: pb.Candidate, finished: pb.CandidateFinished) -> None:
    candidate.finish_reason = finished.finish_reason
    candidate.stop_sequence = finished.stop_sequence
    candidate.finish_message = finished.finish_message
    candidate.safety_ratings.extend(finished.safety_ratings)
    candidate.grounding_json = finished.grounding_json
    candidate.provider_reason = finished.provider_reason
    candidate.refusal_category = finished.refusal_category
    candidate.container_json = finished.container_json


def _grow(part: pb.Part, event: pb.GenerateEvent) -> None:
    match event.WhichOneof("kind"):
        case "text_delta":
            part.text.text += event.text_delta
        case "reasoning_delta":
            _extend(part.reasoning.texts, event.text_index, event.reasoning_delta)
        case "summary_delta":
            _extend(part.reasoning.summaries, event.summary_delta.summary_index, event.summary_delta.text)
        case "refusal_delta":
            part.refusal.text += event.refusal_delta
        case "arguments_delta":
            if part.tool_call.WhichOneof("input") == "text":
                part.tool_call.text += event.arguments_delta
            else:
                part.tool_call.arguments_json += event.arguments_delta
        case "citation":
            part.text.citations.append(event.citation)
        case "logprobs":
            owner = part.refusal if part.HasField("refusal") else part.text
            owner.logprobs.extend(event.logprobs.logprobs)
        case "state":
            part.state.CopyFrom(event.state)
        case "media_delta":
            part.media.data += event.media_delta.data
            part.media.transcript += event.media_delta.transcript
        case "part_updated" if event.part_updated.HasField("media"):
            so_far = part.media.data
            part.MergeFrom(event.part_updated)
            if so_far:
                part.media.data = so_far  # sent as deltas; the data of an update is empty
        case "part_updated":
            state = part.state if part.HasField("state") else None
            part.CopyFrom(pb.Part(state=state))
            part.MergeFrom(event.part_updated)
        case other:
            raise AssertionError(f"unexpected {other}")


def _extend(texts: MutableSequence[str], place: int, delta: str) -> None:
    while len(texts) <= place:
        texts.append("")
    texts[place] += delta
