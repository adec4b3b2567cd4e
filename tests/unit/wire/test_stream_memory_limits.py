"""Limits of the memory of streamed answers."""

from umg_grpc.v1 import pb
from umg_grpc.wire.core.stream_aggregator import StreamAggregator
from umg_grpc.wire.core.stream_memory_limits import FREE_BYTES, MemoryReservation, StreamMemory
from umg_grpc.wire.core.streamed_text_buffers import JOINED_PIECES, Pieces


def test_the_aggregate_of_one_answer_and_of_all_answers_is_bounded() -> None:
    budget = StreamMemory(per_response=FREE_BYTES + 10, total=15)
    one, other = MemoryReservation(budget), MemoryReservation(budget)
    assert one.hold(FREE_BYTES)
    assert budget.reserved == 0
    assert one.hold(FREE_BYTES + 10)
    assert not one.hold(FREE_BYTES + 11)
    assert other.hold(FREE_BYTES + 5)
    assert not other.hold(FREE_BYTES + 6)
    one.release()
    assert other.hold(FREE_BYTES + 10)
    other.release()
    assert budget.reserved == 0


def test_pieces_are_the_text_that_they_make() -> None:
    pieces, text = Pieces(), ""
    for number in range(3 * JOINED_PIECES + 7):
        pieces.append(f"{number} ")
        text += f"{number} "
    assert (pieces.text(), pieces.size, bool(pieces)) == (text, len(text), True)
    pieces.shorten(100)
    assert (pieces.text(), pieces.size) == (text[:100], 100)


def test_a_limited_aggregate_keeps_the_beginning_of_the_answer() -> None:
    events = [pb.GenerateEvent(part_started=pb.Part(text=pb.TextPart()))]
    events += [pb.GenerateEvent(text_delta=f"{number:9} ") for number in range(10_000)]
    finished = pb.GenerateEvent(finished=pb.CandidateFinished(finish_reason=pb.FINISH_REASON_STOP))
    whole = "".join(event.text_delta for event in events)
    early, late = StreamAggregator(10_000), StreamAggregator()
    for event in [*events, finished]:
        for aggregator in (early, late):
            aggregator.feed(pb.StreamGenerateResponse(events=[event]))
    late.limit(10_000)
    for aggregator in (early, late):
        [candidate] = aggregator.response().candidates
        text = candidate.message.parts[0].text.text
        assert whole.startswith(text)
        assert 0.9 < len(text) * aggregator.share / len(whole) < 1.1
        assert candidate.finish_reason == pb.FINISH_REASON_STOP
