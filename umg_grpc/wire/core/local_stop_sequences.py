"""Local stop sequences: the gateway ends a candidate's text before a stop sequence that the provider was not sent. The
provider's format or model accepts none, or fewer.

Only text parts are searched, each separately: no reasoning, tool arguments or refusals. The sequence that is complete
first ends the text, of several that end together the longest. So the cuts between deltas have no effect.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.text_format_interface import StreamDecoder

MAX_SEQUENCES, MAX_CHARACTERS = 64, 1000
"""Maximum number of a request's local stop sequences, and maximum length of each, for a search in little time."""


def with_stop_limit(request: pb.GenerateRequest, quirks: Quirks, member: str, maximum: int | None) -> Quirks:
    """Return the quirks with `max_stop_sequences`, the number of stop sequences that the provider is sent (None: all).
    `member`: dotted path of the sequences in the body, which the quirks may reject; `maximum`: the format's, if any.
    """
    if not request.stop_sequences:
        return quirks
    member = (quirks.renames or {}).get(member, member)
    is_refused = member in (quirks.rejects or ()) or (
        quirks.accepts is not None and member.partition(".")[0] not in quirks.accepts
    )
    limits = [limit for limit in (0 if is_refused else None, quirks.max_stop_sequences, maximum) if limit is not None]
    limit = min(limits, default=None)
    return quirks if limit == quirks.max_stop_sequences else replace(quirks, max_stop_sequences=limit)


def local_stops(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> tuple[str, ...]:
    """Return the stop sequences of the request that the provider is not sent, for `UpstreamRequest`. Sequences beyond
    `MAX_SEQUENCES` and `MAX_CHARACTERS` have no effect, which is recorded in `report`.
    """
    sent = quirks.max_stop_sequences
    if sent is None or len(request.stop_sequences) <= sent:
        return ()
    remaining = [sequence for sequence in request.stop_sequences[sent:] if sequence]
    taken = tuple(sequence for sequence in remaining if len(sequence) <= MAX_CHARACTERS)[:MAX_SEQUENCES]
    if len(taken) < len(remaining):
        report.drop("stop_sequences", f"{sent + len(taken)} of {len(request.stop_sequences)}")
    elif taken:
        report.perform("stop_sequences")
    return taken


def cut_response(response: pb.GenerateResponse, sequences: Iterable[str]) -> None:
    """End each candidate of a complete response, in place, before the first stop sequence in its text parts. Later
    parts are removed. The usage stays, since the provider generated those parts, too.
    """
    for candidate in response.candidates:
        parts = candidate.message.parts
        for index, part in enumerate(parts):
            if not part.HasField("text") or (found := _find(part.text.text, sequences)) is None:
                continue
            at, sequence = found
            _cut_text(part.text, at)
            del parts[index + 1 :]
            candidate.finish_reason, candidate.stop_sequence = pb.FINISH_REASON_STOP_SEQUENCE, sequence
            candidate.provider_reason = candidate.finish_message = ""
            break


def _find(text: str, sequences: Iterable[str]) -> tuple[int, str] | None:
    found = [(at + len(sequence), at, sequence) for sequence in sequences if (at := text.find(sequence)) >= 0]
    return min(found)[1:] if found else None


def _cut_text(text: pb.TextPart, at: int) -> None:
    text.text = text.text[:at]
    cited = [
        citation for citation in text.citations if not citation.HasField("start_index") or citation.start_index < at
    ]
    for citation in cited:
        if citation.HasField("end_index"):
            citation.end_index = min(citation.end_index, at)
    del text.citations[:]
    text.citations.extend(cited)
    tokens = _Tokens()
    tokens.waiting.extend(text.logprobs)
    kept = list(tokens.up_to(len(text.text.encode())))
    del text.logprobs[:]
    text.logprobs.extend(kept)


class _Tokens:
    """Log probabilities of tokens in one text part that are kept until the text of the tokens is emitted."""

    def __init__(self) -> None:
        self.waiting: list[pb.TokenLogprob] = []
        self._bytes = 0  # of the tokens that were emitted

    def up_to(self, size: int) -> Iterator[pb.TokenLogprob]:
        """Yield, and remove, the tokens that end within the first `size` bytes of the text."""
        while self.waiting:
            token = self.waiting[0]
            end = self._bytes + len(token.raw_bytes if token.HasField("raw_bytes") else token.token.encode())
            if end > size:
                return
            self._bytes = end
            yield self.waiting.pop(0)


class _Text:
    """One text part of a stream: its end, held back while it may begin a stop sequence, and the emitted bytes."""

    def __init__(self) -> None:
        self.held = ""
        self.emitted_bytes = 0
        self.tokens = _Tokens()


class _OpenCandidate:
    """State of one candidate of a stream, with its open parts."""

    def __init__(self) -> None:
        self.texts: dict[int, _Text] = {}
        self.open: dict[int, None] = {}  # parts that have started and not ended, in order
        self.stop: tuple[int, str] | None = None  # part and sequence that were found in the current message
        self.ended = False


class StopCutter:
    """State machine that ends candidates of a stream at local stop sequences. It holds back text that may begin one."""

    def __init__(self, sequences: tuple[str, ...], candidate_count: int) -> None:
        self._sequences = sequences
        self._longest = max(map(len, sequences))
        self._expected = max(1, candidate_count)
        self._candidates: dict[int, _OpenCandidate] = {}
        self._usage: pb.Usage | None = None
        self._is_complete = False  # whether the provider's response ended within the last read
        self.stopped = False
        """Whether each candidate has ended, at least one at a stop sequence, so that the provider need not go on."""

    def feed(self, message: pb.StreamGenerateResponse) -> pb.StreamGenerateResponse | None:
        """Return a message with the events up to the stop sequences; None if it has none."""
        events = list[pb.GenerateEvent]()
        for event in message.events:
            events.extend(self._events(event))
        for index, candidate in self._candidates.items():  # after the log probabilities of the last text
            if candidate.stop is not None and not candidate.ended:
                events.extend(self._end(candidate, index, candidate.stop[1]))
        return pb.StreamGenerateResponse(events=events) if events else None

    def _events(self, event: pb.GenerateEvent) -> Iterator[pb.GenerateEvent]:
        kind = event.WhichOneof("kind")
        if kind in {"started", "usage", "opaque", None}:
            if kind == "usage":
                self._usage = event.usage
            yield event
            return
        candidate = self._candidates.setdefault(event.candidate_index, _OpenCandidate())
        if candidate.ended:
            return
        if candidate.stop is not None:
            self._is_complete |= kind == "finished"
            if kind != "logprobs" or event.part_index != candidate.stop[0]:
                return
        elif kind == "text_delta":
            yield from self._text_delta(candidate, event)
            return
        if kind == "part_started":
            candidate.open[event.part_index] = None
        elif kind == "logprobs" and event.part_index in candidate.texts:
            text = candidate.texts[event.part_index]
            text.tokens.waiting.extend(event.logprobs.logprobs)
            yield from _logprobs(event.candidate_index, event.part_index, text)
            return
        elif kind == "part_ended":
            yield from _rest(candidate, event.candidate_index, event.part_index)
            candidate.open.pop(event.part_index, None)
        elif kind == "finished":
            for part in list(candidate.texts):
                yield from _rest(candidate, event.candidate_index, part)
            candidate.ended = True
        yield event

    def _text_delta(self, candidate: _OpenCandidate, event: pb.GenerateEvent) -> Iterator[pb.GenerateEvent]:
        text = candidate.texts.setdefault(event.part_index, _Text())
        received = text.held + event.text_delta
        found = _find(received, self._sequences)
        length = len(received) - self._held_length(received) if found is None else found[0]
        ready, text.held = received[:length], received[length:]
        if ready:
            text.emitted_bytes += len(ready.encode())
            event.text_delta = ready
            yield event
            yield from _logprobs(event.candidate_index, event.part_index, text)
        if found is not None:
            candidate.stop = event.part_index, found[1]

    def _held_length(self, text: str) -> int:
        for at in range(max(0, len(text) - self._longest + 1), len(text)):
            end = text[at:]
            if any(sequence.startswith(end) for sequence in self._sequences):
                return len(end)
        return 0

    def _end(self, candidate: _OpenCandidate, index: int, sequence: str) -> Iterator[pb.GenerateEvent]:
        for part in candidate.open:
            yield pb.GenerateEvent(candidate_index=index, part_index=part, part_ended=pb.PartEnded())
        candidate.ended = True
        ended = sum(each.ended for each in self._candidates.values())
        self.stopped = ended >= max(self._expected, len(self._candidates))
        if self.stopped and self._usage is not None and not self._is_complete:
            ended_early = pb.GenerateEvent(usage=self._usage)
            ended_early.usage.estimated = True
            yield ended_early
        finished = pb.CandidateFinished(finish_reason=pb.FINISH_REASON_STOP_SEQUENCE, stop_sequence=sequence)
        yield pb.GenerateEvent(candidate_index=index, finished=finished)


def _logprobs(candidate: int, part: int, text: _Text) -> Iterator[pb.GenerateEvent]:
    if tokens := list(text.tokens.up_to(text.emitted_bytes)):
        delta = pb.LogprobsDelta(logprobs=tokens)
        yield pb.GenerateEvent(candidate_index=candidate, part_index=part, logprobs=delta)


def _rest(candidate: _OpenCandidate, index: int, part: int) -> Iterator[pb.GenerateEvent]:
    """Yield, at the end of a part, its text and log probabilities that were held back."""
    if (text := candidate.texts.pop(part, None)) is None:
        return
    if text.held:
        yield pb.GenerateEvent(candidate_index=index, part_index=part, text_delta=text.held)
    if text.tokens.waiting:
        delta = pb.LogprobsDelta(logprobs=text.tokens.waiting)
        yield pb.GenerateEvent(candidate_index=index, part_index=part, logprobs=delta)


class StoppingDecoder:
    """Decoder of a provider's stream that ends the response at local stop sequences. One instance per stream."""

    def __init__(self, decoder: StreamDecoder, sequences: tuple[str, ...], candidate_count: int) -> None:
        self._decoder = decoder
        self._cutter = StopCutter(sequences, candidate_count)

    @property
    def stopped(self) -> bool:
        """Whether the response ended at a stop sequence, although the provider's stream goes on."""
        return self._cutter.stopped

    @property
    def done(self) -> bool:
        return self._cutter.stopped or self._decoder.done

    def feed(self, data: bytes) -> pb.StreamGenerateResponse | None:
        message = self._decoder.feed(data)
        return None if message is None else self._cutter.feed(message)

    def close(self) -> pb.StreamGenerateResponse | None:
        message = None if self._cutter.stopped else self._decoder.close()
        return None if message is None else self._cutter.feed(message)
