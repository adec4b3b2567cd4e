"""Estimated token counts of requests and responses, without calls of the provider."""

import re
from collections.abc import Iterable, Iterator

from umg_grpc.tokens.countable_content import Piece, part_pieces, request_pieces
from umg_grpc.tokens.media_token_estimates import media_tokens
from umg_grpc.tokens.vocabularies import SENTENCE_PIECE, counting_rules
from umg_grpc.tokens.vocabulary_cache import is_loaded, load
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT

# Characters encoded in one library call, which holds the interpreter lock, 0.1-3 ms for this many.
CHUNK_CHARACTERS = 8192
LINE_END = re.compile(r"\n(?=[ \t]*[^\s/])")
# Characters that take about a millisecond.
THREAD_CHARACTERS = 32_768
SLOW_THREAD_CHARACTERS = 4096
THREAD_BYTES = 1 << 20  # of documents, which are searched for page marks


class TokenCounter:
    """Token counter for the models of one family, or for one configured tokenizer (see `TOKENIZER_ROWS`).

    Cheap to create, thread-safe and deterministic. The vocabulary is loaded at the first count in the process.
    """

    def __init__(self, family: str = "", tokenizer: str | None = None) -> None:
        self._counting = counting_rules(family, tokenizer)

    def count_text(self, text: str) -> int:
        """Return the number of tokens of a text; 0 for "". Markup like `<|im_end|>` is counted as ordinary text."""
        return self._count([text])

    def count_unsplit(self, text: str) -> int:
        """Return the exact number of tokens of a text, encoded as a whole, for checks of limits.

        `count_text` splits long texts and may count one token more per 8192 characters. Holds the interpreter lock for
        0.1-3 ms per 8192 characters.
        """
        tokens = len(load(self._counting.vocabulary).encode_ordinary(text))
        return -(-tokens * self._counting.percent // 100)

    def count_request(self, request: pb.GenerateRequest, sample: int | None = None) -> int:
        """Return the estimated prompt tokens, at least 3. An image counts as 1000; output parameters do not count.

        `sample`: number of characters to encode and extrapolate from; None encodes all.
        """
        counting = self._counting
        preamble = counting.tool_preamble if request.tools else 0
        pieces = request_pieces(request, counting.message_tokens)
        return min(preamble + self._count(pieces, sample) + counting.response_tokens, MAX_COUNT)

    def count_message(self, message: pb.Message) -> int:
        """Return the number of tokens of a prompt's message, including the tokens for its role and separators."""
        return self._counting.message_tokens + self.count_parts(message.parts)

    def count_parts(self, parts: Iterable[pb.Part], sample: int | None = None) -> int:
        """Return the number of tokens of prompt or response parts, without the tokens for roles and separators.

        `sample`: number of characters to encode and extrapolate from; None encodes all.
        """
        return self._count(part_pieces(parts), sample)

    def estimate_response(
        self, request: pb.GenerateRequest, response: pb.GenerateResponse, sample: int | None = None
    ) -> pb.Usage:
        """Return the estimated usage of a complete response to `request`, for all candidates together.

        `sample`: number of characters to encode and extrapolate from; None encodes all.
        """
        parts = [part for candidate in response.candidates for part in candidate.message.parts]
        reasoning_parts = [part for part in parts if part.WhichOneof("kind") == "reasoning" or part.thought]
        output_parts = [part for part in parts if part.WhichOneof("kind") != "reasoning" and not part.thought]
        reasoning = self.count_parts(reasoning_parts, sample)
        return pb.Usage(
            input_tokens=self.count_request(request, sample),
            output_tokens=min(reasoning + self.count_parts(output_parts, sample), MAX_COUNT),
            reasoning_tokens=reasoning,
            estimated=True,
        )

    @property
    def is_slow(self) -> bool:
        """Whether the next count takes 10-200 ms, because the vocabulary is not loaded yet."""
        return not is_loaded(self._counting.vocabulary)

    def needs_thread(self, request: pb.GenerateRequest) -> bool:
        """Return whether counting the request takes more than about a millisecond, so that it should be done in a
        thread. Reads only as much of the request as is needed to decide.
        """
        if self.is_slow:
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

    def _count(self, pieces: Iterable[Piece], sample: int | None = None) -> int:
        tokenizer = load(self._counting.vocabulary)
        tokens = fixed = characters = rest = 0
        for piece in pieces:
            counted = media_tokens(piece) if isinstance(piece, pb.MediaPart) else piece
            if isinstance(counted, int):
                fixed += counted
                continue
            if sample is not None:
                rest += max(0, len(counted) - (sample - characters))
                counted = counted[: sample - characters]
            characters += len(counted)
            tokens += sum(len(tokenizer.encode_ordinary(chunk)) for chunk in _chunks(counted))
        if rest:
            tokens = round(tokens * (characters + rest) / characters)
        return min(fixed + -(-tokens * self._counting.percent // 100), MAX_COUNT)


def _chunks(text: str) -> Iterator[str]:
    """Yield a text in chunks of limited length. Cuts are before a non-blank line if possible, since hardly any token
    spans that boundary. Any other cut may change the count by one.
    """
    start = 0
    while len(text) - start > CHUNK_CHARACTERS:
        end = start + CHUNK_CHARACTERS
        for line_end in LINE_END.finditer(text, end - CHUNK_CHARACTERS // 4, end):
            end = line_end.end()
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]
