"""Counts the tokens of requests and answers for one kind of model."""

import re
from collections.abc import Iterable, Iterator

from umg_grpc.tokens.content import Piece, part_pieces, request_pieces
from umg_grpc.tokens.loading import is_loaded, load
from umg_grpc.tokens.media import media_tokens
from umg_grpc.tokens.vocabularies import SENTENCE_PIECE, counting_of
from umg_grpc.v1 import pb

# The library holds the interpreter while it reads a text, 0.1-3 ms for so many characters.
STRETCH = 8192
LINE_END = re.compile(r"\n(?=[ \t]*[^\s/])")
# A millisecond or so.
THREAD_CHARACTERS = 32_768
SLOW_THREAD_CHARACTERS = 4096
THREAD_BYTES = 1 << 20  # of documents, which are searched for pages


class TokenCounter:
    """Counts as the vocabulary of a family does, or the one that the operator chose (`TOKENIZERS`). Cheap to make, for
    any thread, and a pure function of what it is given: vocabularies are read once a process, at the first count.
    """

    def __init__(self, family: str = "", tokenizer: str | None = None) -> None:
        self._counting = counting_of(family, tokenizer)

    def count_text(self, text: str) -> int:
        """Tokens of a text; 0 for an empty one. Markup like `<|im_end|>` counts as the text that it is."""
        return self._count([text])

    def count_whole(self, text: str) -> int:
        """Tokens of a text in one go, for limits: `count_text` may count one more for every 8192 characters. Holds the
        interpreter meanwhile, 0.1-3 ms for so many.
        """
        tokens = len(load(self._counting.vocabulary).encode_ordinary(text))
        return -(-tokens * self._counting.percent // 100)

    def count_request(self, request: pb.GenerateRequest) -> int:
        """Tokens of the prompt, an estimate: at least 3, and 1000 for each image. What is to be generated, and how
        much, adds nothing.
        """
        counting = self._counting
        preamble = counting.tool_preamble if request.tools else 0
        return preamble + self._count(request_pieces(request, counting.message_tokens)) + counting.answer_tokens

    def count_parts(self, parts: Iterable[pb.Part]) -> int:
        """Tokens of what parts say, of a prompt or an answer, without the marks of a turn."""
        return self._count(part_pieces(parts))

    def estimate_usage(
        self, request: pb.GenerateRequest, texts: Iterable[str], reasoning: Iterable[str] = ()
    ) -> pb.Usage:
        """The usage of an answer for which the provider sent none, or that was cut off. `texts` is all that was
        generated beside the thoughts (text, names and arguments of calls), `reasoning` the thoughts; pieces of a
        stream are joined before they are counted.
        """
        thoughts = self.count_text("".join(reasoning))
        return pb.Usage(
            input_tokens=self.count_request(request),
            output_tokens=self.count_text("".join(texts)) + thoughts,
            reasoning_tokens=thoughts,
            estimated=True,
        )

    def estimate_response(self, request: pb.GenerateRequest, response: pb.GenerateResponse) -> pb.Usage:
        """As `estimate_usage`, of an answer in one piece, all candidates together."""
        parts = [part for candidate in response.candidates for part in candidate.message.parts]
        thoughts = self.count_parts(part for part in parts if part.WhichOneof("kind") == "reasoning" or part.thought)
        return pb.Usage(
            input_tokens=self.count_request(request),
            output_tokens=thoughts
            + self.count_parts(part for part in parts if part.WhichOneof("kind") != "reasoning" and not part.thought),
            reasoning_tokens=thoughts,
            estimated=True,
        )

    def needs_thread(self, request: pb.GenerateRequest) -> bool:
        """Whether to count the request takes so long (over a millisecond or so) that an event loop should leave it to
        a thread. Cheap: it looks no further than it has to.
        """
        if not is_loaded(self._counting.vocabulary):
            return True
        limit = SLOW_THREAD_CHARACTERS if self._counting.vocabulary in SENTENCE_PIECE else THREAD_CHARACTERS
        characters = documents = 0
        for piece in request_pieces(request, self._counting.message_tokens):
            if isinstance(piece, str):
                characters += len(piece)
            elif isinstance(piece, pb.MediaPart) and piece.kind == pb.MEDIA_KIND_DOCUMENT:
                documents += len(piece.data)
            if characters > limit or documents > THREAD_BYTES:
                return True
        return False

    def _count(self, pieces: Iterable[Piece]) -> int:
        tokenizer = load(self._counting.vocabulary)
        tokens = fixed = 0
        for piece in pieces:
            counted = media_tokens(piece) if isinstance(piece, pb.MediaPart) else piece
            if isinstance(counted, int):
                fixed += counted
            else:
                tokens += sum(len(tokenizer.encode_ordinary(stretch)) for stretch in _stretches(counted))
        return fixed + -(-tokens * self._counting.percent // 100)


def _stretches(text: str) -> Iterator[str]:
    """The text in stretches that end, where they can, with a line before one that is not blank: there hardly any
    vocabulary joins anything, so the count is as if the text were whole. Elsewhere it may be off by one for each.
    """
    start = 0
    while len(text) - start > STRETCH:
        end = start + STRETCH
        for line_end in LINE_END.finditer(text, end - STRETCH // 4, end):
            end = line_end.end()
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]
