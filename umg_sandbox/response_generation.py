"""Generation of simulated text responses: reasoning, refusals, tool calls, text, JSON and images, by the prompt."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import assert_never

from umg_grpc.v1 import pb
from umg_sandbox import response_images, simulated_faults
from umg_sandbox.image_drawing import Drawing
from umg_sandbox.output_truncation import cut_at_stop, pieces, truncate
from umg_sandbox.prompt_reader import Count, Prompt, first_words, numbered
from umg_sandbox.schema_value_generation import instance, json_of
from umg_sandbox.schema_work_budget import WorkBudget
from umg_sandbox.simulated_reasoning import reasoning_part, reasoning_plan, reasoning_text, signed
from umg_sandbox.simulated_token_limits import max_output_tokens
from umg_sandbox.simulated_tool_calls import call_part, called_tools, read_schema, searches, tool_words
from umg_sandbox.simulated_web_search import ResultPage, find_pages, search_parts
from umg_sandbox.words_from_prompt import Words, digest

QUOTED_CHARACTERS = 600
RESULT_CHARACTERS = 4000
DESCRIBED_MEDIA = 20

REFUSAL_TEXT = "I cannot help with that. (A simulated refusal, as [[refuse]] in the prompt asks for.)"
BLOCKED_RATING = pb.SafetyRating(category="HARM_CATEGORY_DANGEROUS_CONTENT", probability="HIGH", blocked=True)

FILLER_SENTENCES = (
    "A real model would now write about {topics}.",
    "Nothing here was thought up by a model: the same prompt always gives the same words.",
    "The words {topics} were taken from the prompt.",
    "To get a real answer, ask a model that is served by a real provider.",
)


@dataclass
class Draft:
    """Generated response whose images are not drawn yet. `drawings`: (part for the image, drawing parameters)."""

    response: pb.GenerateResponse
    drawings: list[tuple[pb.MediaPart, Drawing]] = field(default_factory=list)


@dataclass
class _Text:
    """Text of a response while it is composed, with its citations, whose positions are in code points."""

    text: str = ""
    citations: list[pb.Citation] = field(default_factory=list)

    def append(self, sentence: str, page: ResultPage | None = None, between: str = " ") -> None:
        if self.text:
            self.text += between
        start = len(self.text)
        self.text += sentence
        if page is not None:
            self.citations.append(page.citation(start, len(self.text)))


def make_response(request: pb.GenerateRequest, model: str, prompt: Prompt, count: Count) -> Draft:
    """Return the generated response to a prompt with its usage, except for cache tokens. `count`: returns the number
    of tokens of a text. Raise UmgError for an invalid tool choice or JSON schema.
    """
    draft = Draft(pb.GenerateResponse(model=model))
    usage = draft.response.usage
    usage.input_tokens = prompt.tokens
    usage.image_input_tokens = prompt.media_tokens(pb.MEDIA_KIND_IMAGE)
    usage.audio_input_tokens = prompt.media_tokens(pb.MEDIA_KIND_AUDIO)
    usage.video_input_tokens = prompt.media_tokens(pb.MEDIA_KIND_VIDEO)
    usage.document_input_tokens = prompt.media_tokens(pb.MEDIA_KIND_DOCUMENT)
    if simulated_faults.mark(prompt.recent_text) == simulated_faults.BLOCK_MARK:
        draft.response.block_reason = "SAFETY"
        draft.response.prompt_safety_ratings.append(BLOCKED_RATING)
        return draft
    budget = WorkBudget()
    for index in range(request.candidate_count or 1):
        _Candidate(request, model, prompt, count, draft, index, budget).make()
    return draft


@dataclass
class _Candidate:
    """Generator of one candidate (alternative response) of a response. `index`: position of the candidate."""

    request: pb.GenerateRequest
    model: str
    prompt: Prompt
    count: Count
    draft: Draft
    index: int
    budget: WorkBudget
    """Remaining work for the JSON values of all candidates."""

    def __post_init__(self) -> None:
        request, prompt, response = self.request, self.prompt, self.draft.response
        self._usage = response.usage
        self._candidate = response.candidates.add(index=self.index, message=pb.Message(role=pb.ROLE_ASSISTANT))
        self._parts = self._candidate.message.parts
        self._left = request.max_output_tokens or max_output_tokens(self.model)
        text = "\n".join([*(result.text for result in prompt.results), prompt.question or prompt.system])
        self._words = Words(text, str(self.index), tool_words(request))
        self._call_words = Words(prompt.question, str(self.index), tool_words(request))

    def make(self) -> None:
        """Add the candidate to the response: reasoning, then a refusal, tool calls, or text and images."""
        has_reasoning = self._add_reasoning()
        called = called_tools(self.request, self.prompt)
        if self._left <= 0:
            self._candidate.finish_reason = pb.FINISH_REASON_LENGTH
        elif simulated_faults.mark(self.prompt.recent_text) == simulated_faults.REFUSE_MARK:
            self._add_refusal()
        elif called:
            self._add_calls(called)
        else:
            self._add_text()
        if has_reasoning and self.request.source.format == "native":
            self._attach_state()

    def _spend(self, tokens: int) -> None:
        self._left -= tokens
        self._usage.output_tokens += tokens

    def _add_reasoning(self) -> bool:
        reasoning = reasoning_plan(self.request, self.prompt)
        if reasoning is None:
            return False
        text = reasoning_text(reasoning, self.prompt, self._words, self._left, self.count)
        tokens = self.count(text)
        self._spend(tokens)
        self._usage.reasoning_tokens += tokens
        if reasoning.shown:
            self._parts.append(reasoning_part(reasoning, text, self.request, self.prompt))
        return True

    def _attach_state(self) -> None:
        calls = [part for part in self._parts if part.HasField("tool_call")]
        texts = [part for part in self._parts if part.HasField("text")]
        for part in calls[:1] or texts[-1:]:
            text = part.tool_call.arguments_json or part.tool_call.text or part.text.text
            part.state.CopyFrom(signed(text, "native"))

    def _add_refusal(self) -> None:
        text = truncate(REFUSAL_TEXT, self._left, self.count)
        self._spend(self.count(text))
        whole = text == REFUSAL_TEXT
        self._candidate.finish_reason = pb.FINISH_REASON_REFUSAL if whole else pb.FINISH_REASON_LENGTH
        if text:
            self._parts.add().refusal.text = text
            self._parts[-1].refusal.logprobs.extend(self._logprobs(text, []))

    def _add_calls(self, called: list[tuple[int, pb.Tool]]) -> None:
        """Add tool calls to the candidate, up to the token limit, as arguments that are cut are no valid JSON."""
        for position, tool in called:
            salt = f"{self.index}.{position}"
            part = call_part(self.request, self.prompt, position, tool, self._call_words, salt, self.budget)
            call = part.tool_call
            tokens = self.count(f"{call.name} {call.arguments_json or call.text}")
            if tokens > self._left:
                break
            self._spend(tokens)
            self._parts.append(part)
        calls = any(part.HasField("tool_call") for part in self._parts)
        self._candidate.finish_reason = pb.FINISH_REASON_TOOL_CALLS if calls else pb.FINISH_REASON_LENGTH

    def _add_text(self) -> None:
        request, pages = self.request, list[ResultPage]()
        if searches(request):
            pages = find_pages(request, self._words)
            self._parts.extend(search_parts(request, self.prompt, pages))
            self._usage.web_search_requests += 1
        only_images = list(request.output_modalities) == ["image"]
        response = _Text() if only_images else self._text(pages)
        text, sequence = cut_at_stop(response.text, request.stop_sequences)
        fits = truncate(text, self._left, self.count)
        self._spend(self.count(fits))
        if fits:
            self._parts.append(self._text_part(fits, response.citations))
        self._candidate.finish_reason = pb.FINISH_REASON_STOP
        if fits != text:
            self._candidate.finish_reason = pb.FINISH_REASON_LENGTH
        elif sequence:
            self._candidate.finish_reason = pb.FINISH_REASON_STOP_SEQUENCE
            self._candidate.stop_sequence = sequence
        elif "image" in request.output_modalities:
            self._add_image()

    def _text_part(self, text: str, citations: list[pb.Citation]) -> pb.Part:
        part = pb.Part(text=pb.TextPart(text=text))
        for citation in citations:
            if citation.start_index < len(text):
                citation.end_index = min(citation.end_index, len(text))
                part.text.citations.append(citation)
        part.text.logprobs.extend(self._logprobs(text, [citation.end_index for citation in part.text.citations]))
        return part

    def _add_image(self) -> None:
        plan = response_images.plan(self.request, self.model, self.prompt.question, self.index)
        if self._left < response_images.IMAGE_TOKENS:
            self._candidate.finish_reason = pb.FINISH_REASON_LENGTH
            return
        self._spend(response_images.IMAGE_TOKENS)
        self._usage.image_output_tokens += response_images.IMAGE_TOKENS
        media = self._parts.add().media
        media.kind, media.mime_type = pb.MEDIA_KIND_IMAGE, plan.mime_type
        self.draft.drawings.append((media, plan))

    def _logprobs(self, text: str, ends: list[int]) -> Iterator[pb.TokenLogprob]:
        """Yield a log probability for each piece in which a stream sends the text, as the simulated model has no
        tokens. `ends`: positions in code points at which a piece must end.
        """
        if not self.request.logprobs:
            return
        for place, piece in enumerate(pieces(text, ends)):
            entry = _likelihood(piece, 1 + self._words.pick(f"logprob {place}", 400))
            if self.request.top_logprobs:
                entry.alternatives.append(_likelihood(piece, 1 + self._words.pick(f"logprob {place}", 400)))
            for rank in range(1, self.request.top_logprobs):
                entry.alternatives.append(_likelihood(f"{piece}{rank}", 1000 * rank + 500))
            yield entry

    # --- text

    def _text(self, pages: list[ResultPage]) -> _Text:
        match self.request.response_format.WhichOneof("kind"):
            case "json":
                return self._structured(json_of(self._object()), pages)
            case "json_schema":
                return self._structured(json_of(self._instance(self.request.response_format.json_schema)), pages)
            case "enum_text":
                value = self._instance(self.request.response_format.enum_text)
                return _Text(value if isinstance(value, str) else json_of(value))
            case "text" | None:
                return self._prose(pages)
            case unhandled:
                assert_never(unhandled)

    def _structured(self, text: str, pages: list[ResultPage]) -> _Text:
        return _Text(text, [page.citation(0, len(text)) for page in pages])

    def _instance(self, described: pb.JsonSchemaFormat) -> object:
        if not described.schema_json:
            return self._object()
        field = f"response_format.{self.request.response_format.WhichOneof('kind')}.schema_json"
        schema = read_schema(described.schema_json, described.native_schema, field)
        return instance(schema, self._words, field=field, budget=self.budget)

    def _object(self) -> dict[str, object]:
        """Return the JSON object of a response in JSON mode, about the question, its topics, tool results and media."""
        made: dict[str, object] = {"simulated": True, "question": first_words(self.prompt.question)}
        made["topics"] = list(self._words.topics(4))
        if self.prompt.results:
            made["results"] = [result.text[:RESULT_CHARACTERS] for result in self.prompt.results]
        if self.prompt.media_descriptions:
            made["seen"] = [description.words for description in self.prompt.media_descriptions[:DESCRIBED_MEDIA]]
        return made

    def _prose(self, pages: list[ResultPage]) -> _Text:
        prompt, response = self.prompt, _Text()
        response.append(f"This is a simulated answer: the sandbox plays {self.model}, and no model was asked.")
        if (self.request.candidate_count or 1) > 1:
            response.append(f"It is answer {self.index + 1} of {self.request.candidate_count}.")
        for result in prompt.results:
            tool = f"The tool {result.name}" if result.name else "The tool"
            response.append(f"{tool} gave: {_cut(result.text, RESULT_CHARACTERS)}", between="\n")
        if prompt.question and not prompt.results:
            response.append(f"You said: {_cut(prompt.question, QUOTED_CHARACTERS)}", between="\n")
        if prompt.system:
            response.append(f"My instructions begin: {first_words(prompt.system)}", between="\n")
        if prompt.turns > 1:
            response.append(f"This is turn {prompt.turns}; you began with: {first_words(prompt.opening)}", between="\n")
        self._describe(response)
        if pages:
            response.append("The simulated search found this.", between="\n")
        for page in pages:
            response.append(page.sentence, page)
        topics = ", ".join(self._words.topics(3))
        begin = digest(prompt.question, str(self.index))[0]
        fillers = [FILLER_SENTENCES[(begin + step) % len(FILLER_SENTENCES)].format(topics=topics) for step in range(2)]
        response.append(" ".join(fillers), between="\n")
        return response

    def _describe(self, response: _Text) -> None:
        documents = 0
        for name, description in islice(numbered(self.prompt.media_descriptions), DESCRIBED_MEDIA):
            response.append(f"{name}: {description.words}.", between="\n")
            if description.text is not None:
                response.append(f"It begins: {first_words(description.text)}")
                if description.citable and description.text:
                    end = len(response.text)
                    start = end - len(first_words(description.text))
                    response.citations.append(_of_document(description.text, description.blocks, documents, start, end))
            documents += description.kind == pb.MEDIA_KIND_DOCUMENT
        if (more := len(self.prompt.media_descriptions) - DESCRIBED_MEDIA) > 0:
            response.append(f"There are {more} more files.", between="\n")


def _of_document(text: str, blocks: int, index: int, start: int, end: int) -> pb.Citation:
    unit = pb.DOCUMENT_UNIT_BLOCK if blocks else pb.DOCUMENT_UNIT_CHARACTER
    last = 1 if blocks else min(len(text), end - start)
    source = pb.DocumentSource(document_index=index, unit=unit, start=0, end=last)
    cited = text if blocks else text[:last]
    return pb.Citation(start_index=start, end_index=end, cited_text=cited, document=source)


def _likelihood(token: str, thousandths: int) -> pb.TokenLogprob:
    return pb.TokenLogprob(token=token, logprob=-thousandths / 1000, raw_bytes=token.encode("utf-8", "replace"))


def _cut(text: str, max_characters: int) -> str:
    return text if len(text) <= max_characters else text[:max_characters] + " ..."
