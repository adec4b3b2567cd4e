"""Events for the parts of a response (text, reasoning, tool call) while a provider's stream is decoded."""

from collections.abc import Iterator, Sequence

from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_to_events import part_to_events
from umg_grpc.wire.core.split_character_repair import SurrogateJoiner


class PartEvents:
    """Factory of the canonical events for parts of one candidate response. It numbers parts in order of their start."""

    def __init__(self, index: int = 0) -> None:
        self.count = 0  # of the parts that were started
        self._index = index

    def event(self, part: int = 0) -> pb.GenerateEvent:
        """Return an event for part `part` of the candidate. The caller adds the content."""
        return pb.GenerateEvent(candidate_index=self._index, part_index=part)

    def start(self, part: pb.Part) -> pb.GenerateEvent:
        """Return the event that starts a part, which gets the next index."""
        event = self.event(self.count)
        event.part_started.CopyFrom(part)
        self.count += 1
        return event

    def end(self, part: int) -> pb.GenerateEvent:
        """Return the event that ends the part with this index."""
        event = self.event(part)
        event.part_ended.SetInParent()
        return event

    def whole(self, part: pb.Part) -> Iterator[pb.GenerateEvent]:
        """Yield the start, content and end of a part that the provider sent at once; it gets the next index."""
        for event in part_to_events(part):
            event.candidate_index, event.part_index = self._index, self.count
            yield event
        self.count += 1


class PartEmitter(PartEvents):
    """Emitter of part events for a format that does not mark parts: starts and ends follow from the kinds of the
    deltas. At most one part receives text. A text part stays open for late citations until the next text part begins
    or, with `keeps_texts`, until the response ends.
    """

    def __init__(self, index: int, *, has_halves: bool, keeps_texts: bool) -> None:
        super().__init__(index)
        self.has_halves = has_halves  # whether characters may be split between deltas
        self._keeps_texts = keeps_texts
        self.kind = ""  # kind of the part that is being written: text, reasoning, refusal; "" if there is none
        self._part = 0
        self._sealed = False  # whether it accepts no more text
        self._open_texts: list[int] = []
        self._joiner = SurrogateJoiner()

    def end_texts(self) -> Iterator[pb.GenerateEvent]:
        """Yield the end events of all open text parts."""
        texts, self._open_texts = self._open_texts, []
        yield from map(self.end, texts)

    def switch(self, kind: str) -> Iterator[pb.GenerateEvent]:
        """Yield the end of the open part and the start of a part of `kind`; nothing if the open part is of this kind.
        `kind`: `text`, `reasoning`, `refusal`, or "" to start none.
        """
        if self.kind == kind and not self._sealed:
            return
        if self.kind:
            if rest := self._joiner.rest():
                yield self.delta(rest)
            if self.kind != "text":
                yield self.end(self._part)
        self.kind, self._sealed = kind, False
        if not kind:
            return
        part = pb.Part()
        (part.text if kind == "text" else part.reasoning if kind == "reasoning" else part.refusal).SetInParent()
        if kind == "text" and not self._keeps_texts:
            yield from self.end_texts()
        started = self.start(part)
        self._part = started.part_index
        if kind == "text":
            self._open_texts.append(self._part)
            self.text_started(self._part)
        yield started

    def append_text(self, kind: str, text: str) -> Iterator[pb.GenerateEvent]:
        """Yield the events that append text to the open part if it is of `kind` (see `switch`), else to a new part."""
        yield from self.switch(kind)
        if self.has_halves:
            text = self._joiner.join(text)
        if text:
            yield self.delta(text)

    def delta(self, text: str) -> pb.GenerateEvent:
        if self.kind == "text":
            self.text_added(text)
            return pb.GenerateEvent(candidate_index=self._index, part_index=self._part, text_delta=text)
        if self.kind == "reasoning":
            return pb.GenerateEvent(candidate_index=self._index, part_index=self._part, reasoning_delta=text)
        return pb.GenerateEvent(candidate_index=self._index, part_index=self._part, refusal_delta=text)

    def append_deltas(self, texts: Sequence[str], message: pb.StreamGenerateResponse) -> None:
        """Append to a message the events that append texts, none of them empty, to the open text or reasoning."""
        index, part, is_text, add = self._index, self._part, self.kind == "text", message.events.add
        for text in texts:
            event = add()  # in place: faster than copies of finished events
            if is_text:
                event.text_delta = text
            else:
                event.reasoning_delta = text
            if index:
                event.candidate_index = index
            if part:
                event.part_index = part
        if is_text:
            self.text_added("".join(texts))

    def text_started(self, part: int) -> None:
        """Do nothing; a subclass records here the start of a text part. `part`: its index."""

    def text_added(self, text: str) -> None:
        """Do nothing; a subclass records here the text of each delta of a text part."""
