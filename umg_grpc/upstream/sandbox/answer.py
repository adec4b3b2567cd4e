"""The answer: what the sandbox says to a prompt. Deterministic, and labelled as simulated."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from umg_grpc.upstream.sandbox import drawing, faults
from umg_grpc.upstream.sandbox.calls import call_part, called_tools, made_up, read_schema, searches, tool_words
from umg_grpc.upstream.sandbox.instances import json_of
from umg_grpc.upstream.sandbox.limits import pieces, shortened, stopped
from umg_grpc.upstream.sandbox.models import max_output_tokens
from umg_grpc.upstream.sandbox.prompt import Count, Prompt, first_words, numbered
from umg_grpc.upstream.sandbox.searching import Page, found, search_parts
from umg_grpc.upstream.sandbox.thoughts import reasoning_part, signed, think, thinking
from umg_grpc.upstream.sandbox.words import Words, digest
from umg_grpc.v1 import pb

QUOTED = 600
"""Characters of what the user said that an answer repeats."""
RESULT = 4000
"""Characters of what a tool gave that an answer repeats."""
SEEN = 20
"""Media that an answer describes one by one."""

REFUSAL = "I cannot help with that. (A simulated refusal, as [[refuse]] in the prompt asks for.)"
RATING = pb.SafetyRating(category="HARM_CATEGORY_DANGEROUS_CONTENT", probability="HIGH", blocked=True)

FILLERS = (
    "A real model would now write about {topics}.",
    "Nothing here was thought up by a model: the same prompt always gives the same words.",
    "The words {topics} were taken from the prompt.",
    "To get a real answer, ask a model that is served by a real provider.",
)


@dataclass
class Made:
    """An answer, less the images that are still to be drawn."""

    response: pb.GenerateResponse
    drawings: list[tuple[pb.MediaPart, drawing.Drawing]] = field(default_factory=list)


@dataclass
class _Text:
    """Text with spans that have sources, in code points."""

    text: str = ""
    citations: list[pb.Citation] = field(default_factory=list)

    def say(self, sentence: str, page: Page | None = None, between: str = " ") -> None:
        if self.text:
            self.text += between
        start = len(self.text)
        self.text += sentence
        if page is not None:
            self.citations.append(page.citation(start, len(self.text)))


def make(request: pb.GenerateRequest, model: str, prompt: Prompt, count: Count) -> Made:
    """The whole answer with its usage, less what the prompt cache did. Raises UmgError for choices and schemas that
    make no sense.
    """
    made = Made(pb.GenerateResponse(model=model))
    usage = made.response.usage
    usage.input_tokens = prompt.tokens
    usage.image_input_tokens = prompt.media_tokens(pb.MEDIA_KIND_IMAGE)
    usage.audio_input_tokens = prompt.media_tokens(pb.MEDIA_KIND_AUDIO)
    usage.video_input_tokens = prompt.media_tokens(pb.MEDIA_KIND_VIDEO)
    usage.document_input_tokens = prompt.media_tokens(pb.MEDIA_KIND_DOCUMENT)
    if faults.mark(prompt.asked) == faults.BLOCK:
        made.response.block_reason = "SAFETY"
        made.response.prompt_safety_ratings.append(RATING)
        return made
    for index in range(request.candidate_count or 1):
        _Candidate(request, model, prompt, count, made, index).make()
    return made


class _Candidate:
    """One of the answers."""

    def __init__(
        self, request: pb.GenerateRequest, model: str, prompt: Prompt, count: Count, made: Made, index: int
    ) -> None:
        self._request = request
        self._model = model
        self._prompt = prompt
        self._count = count
        self._made = made
        self._usage = made.response.usage
        self._candidate = made.response.candidates.add(index=index, message=pb.Message(role=pb.ROLE_ASSISTANT))
        self._parts = self._candidate.message.parts
        self._left = request.max_output_tokens or max_output_tokens(model)
        said = "\n".join([*(result.text for result in prompt.results), prompt.question or prompt.system])
        self._words = Words(said, str(index), tool_words(request))
        self._call_words = Words(prompt.question, str(index), tool_words(request))

    def make(self) -> None:
        """Thoughts, then a refusal, calls, or text and images."""
        thought = self._think()
        called = called_tools(self._request, self._prompt)
        if self._left <= 0:
            self._candidate.finish_reason = pb.FINISH_REASON_LENGTH
        elif faults.mark(self._prompt.asked) == faults.REFUSE:
            self._refuse()
        elif called:
            self._call(called)
        else:
            self._speak()
        if thought and self._request.source.format == "native":
            self._sign()

    def _spend(self, tokens: int) -> None:
        self._left -= tokens
        self._usage.output_tokens += tokens

    def _think(self) -> bool:
        how = thinking(self._request, self._prompt)
        if how is None:
            return False
        text = think(how, self._prompt, self._words, self._left, self._count)
        tokens = self._count(text)
        self._spend(tokens)
        self._usage.reasoning_tokens += tokens
        if how.shown:
            self._parts.append(reasoning_part(how, text, self._request, self._prompt))
        return True

    def _sign(self) -> None:
        """As native has it: the first call carries the state of the thoughts, or else the last text."""
        calls = [part for part in self._parts if part.HasField("tool_call")]
        texts = [part for part in self._parts if part.HasField("text")]
        for part in calls[:1] or texts[-1:]:
            said = part.tool_call.arguments_json or part.tool_call.text or part.text.text
            part.state.CopyFrom(signed(said, "native"))

    def _refuse(self) -> None:
        text = shortened(REFUSAL, self._left, self._count)
        self._spend(self._count(text))
        whole = text == REFUSAL
        self._candidate.finish_reason = pb.FINISH_REASON_REFUSAL if whole else pb.FINISH_REASON_LENGTH
        if text:
            self._parts.add().refusal.text = text
            self._parts[-1].refusal.logprobs.extend(self._logprobs(text, []))

    def _call(self, called: list[tuple[int, pb.Tool]]) -> None:
        """A call that the limit would cut is left out: half of its arguments would be no JSON."""
        for position, tool in called:
            salt = f"{self._candidate.index}.{position}"
            part = call_part(self._request, self._prompt, position, tool, self._call_words, salt)
            call = part.tool_call
            tokens = self._count(f"{call.name} {call.arguments_json or call.text}")
            if tokens > self._left:
                break
            self._spend(tokens)
            self._parts.append(part)
        calls = any(part.HasField("tool_call") for part in self._parts)
        self._candidate.finish_reason = pb.FINISH_REASON_TOOL_CALLS if calls else pb.FINISH_REASON_LENGTH

    def _speak(self) -> None:
        request, pages = self._request, list[Page]()
        if searches(request):
            pages = found(request, self._prompt, self._words)
            self._parts.extend(search_parts(request, self._prompt, pages))
            self._usage.web_search_requests += 1
        only_images = list(request.output_modalities) == ["image"]
        said = _Text() if only_images else self._text(pages)
        text, sequence = stopped(said.text, request.stop_sequences)
        fits = shortened(text, self._left, self._count)
        self._spend(self._count(fits))
        if fits:
            self._parts.append(self._text_part(fits, said.citations))
        self._candidate.finish_reason = pb.FINISH_REASON_STOP
        if fits != text:
            self._candidate.finish_reason = pb.FINISH_REASON_LENGTH
        elif sequence:
            self._candidate.finish_reason = pb.FINISH_REASON_STOP_SEQUENCE
            self._candidate.stop_sequence = sequence
        elif "image" in request.output_modalities:
            self._draw()

    def _text_part(self, text: str, citations: list[pb.Citation]) -> pb.Part:
        part = pb.Part(text=pb.TextPart(text=text))
        for citation in citations:
            if citation.start_index < len(text):
                citation.end_index = min(citation.end_index, len(text))
                part.text.citations.append(citation)
        part.text.logprobs.extend(self._logprobs(text, [citation.end_index for citation in part.text.citations]))
        return part

    def _draw(self) -> None:
        plan = drawing.plan(self._request.image_output, first_words(self._prompt.question))
        if self._left < drawing.TOKENS:
            self._candidate.finish_reason = pb.FINISH_REASON_LENGTH
            return
        self._spend(drawing.TOKENS)
        self._usage.image_output_tokens += drawing.TOKENS
        media = self._parts.add().media
        media.kind, media.mime_type = pb.MEDIA_KIND_IMAGE, plan.mime_type
        self._made.drawings.append((media, plan))

    def _logprobs(self, text: str, ends: list[int]) -> Iterator[pb.TokenLogprob]:
        """Likelihoods of the pieces in which a stream tells the text: the sandbox has no tokens of its own."""
        if not self._request.logprobs:
            return
        for place, piece in enumerate(pieces(text, ends)):
            entry = _likelihood(piece, 1 + self._words.pick(f"logprob {place}", 400))
            if self._request.top_logprobs:
                entry.alternatives.append(_likelihood(piece, 1 + self._words.pick(f"logprob {place}", 400)))
            for rank in range(1, self._request.top_logprobs):
                entry.alternatives.append(_likelihood(f"{piece}{rank}", 1000 * rank + 500))
            yield entry

    # --- what is said

    def _text(self, pages: list[Page]) -> _Text:
        match self._request.response_format.WhichOneof("kind"):
            case "json":
                return self._structured(json_of(self._object()), pages)
            case "json_schema":
                return self._structured(json_of(self._instance(self._request.response_format.json_schema)), pages)
            case "enum_text":
                value = self._instance(self._request.response_format.enum_text)
                return _Text(value if isinstance(value, str) else json_of(value))
        return self._prose(pages)

    def _structured(self, text: str, pages: list[Page]) -> _Text:
        return _Text(text, [page.citation(0, len(text)) for page in pages])

    def _instance(self, described: pb.JsonSchemaFormat) -> object:
        if not described.schema_json:
            return self._object()
        field = f"response_format.{self._request.response_format.WhichOneof('kind')}.schema_json"
        schema = read_schema(described.schema_json, described.native_schema, field)
        return made_up(schema, self._words, field)

    def _object(self) -> dict[str, object]:
        """Any JSON object: what was asked and what was seen."""
        made: dict[str, object] = {"simulated": True, "question": first_words(self._prompt.question)}
        made["topics"] = list(self._words.topics(4))
        if self._prompt.results:
            made["results"] = [result.text[:RESULT] for result in self._prompt.results]
        if self._prompt.sights:
            made["seen"] = [sight.words for sight in self._prompt.sights[:SEEN]]
        return made

    def _prose(self, pages: list[Page]) -> _Text:
        prompt, said = self._prompt, _Text()
        said.say(f"This is a simulated answer: the sandbox plays {self._model}, and no model was asked.")
        if (self._request.candidate_count or 1) > 1:
            said.say(f"It is answer {self._candidate.index + 1} of {self._request.candidate_count}.")
        for result in prompt.results:
            tool = f"The tool {result.name}" if result.name else "The tool"
            said.say(f"{tool} gave: {_cut(result.text, RESULT)}", between="\n")
        if prompt.question and not prompt.results:
            said.say(f"You said: {_cut(prompt.question, QUOTED)}", between="\n")
        if prompt.system:
            said.say(f"My instructions begin: {first_words(prompt.system)}", between="\n")
        if prompt.turns > 1:
            said.say(f"This is turn {prompt.turns}; you began with: {first_words(prompt.opening)}", between="\n")
        self._describe(said)
        if pages:
            said.say("The simulated search found this.", between="\n")
        for page in pages:
            said.say(page.sentence, page)
        topics = ", ".join(self._words.topics(3))
        begin = digest(prompt.question, str(self._candidate.index))[0]
        fillers = [FILLERS[(begin + step) % len(FILLERS)].format(topics=topics) for step in range(2)]
        said.say(" ".join(fillers), between="\n")
        return said

    def _describe(self, said: _Text) -> None:
        """What was seen of each medium."""
        documents = 0
        for name, sight in islice(numbered(self._prompt.sights), SEEN):
            said.say(f"{name}: {sight.words}.", between="\n")
            if sight.text is not None:
                said.say(f"It begins: {first_words(sight.text)}")
                if sight.citable and sight.text:
                    start = len(said.text) - len(first_words(sight.text))
                    said.citations.append(_of_document(sight.text, sight.blocks, documents, start, len(said.text)))
            documents += sight.kind == pb.MEDIA_KIND_DOCUMENT
        if (more := len(self._prompt.sights) - SEEN) > 0:
            said.say(f"There are {more} more files.", between="\n")


def _of_document(text: str, blocks: int, index: int, start: int, end: int) -> pb.Citation:
    """The beginning of a document as the source of a span of the answer."""
    unit = pb.DOCUMENT_UNIT_BLOCK if blocks else pb.DOCUMENT_UNIT_CHARACTER
    last = 1 if blocks else min(len(text), end - start)
    source = pb.DocumentSource(document_index=index, unit=unit, start=0, end=last)
    cited = text if blocks else text[:last]
    return pb.Citation(start_index=start, end_index=end, cited_text=cited, document=source)


def _likelihood(token: str, thousandths: int) -> pb.TokenLogprob:
    return pb.TokenLogprob(token=token, logprob=-thousandths / 1000, token_bytes=token.encode("utf-8", "replace"))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + " ..."
