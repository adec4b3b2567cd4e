"""Embedding: one request from admission to its vectors."""

import asyncio
from collections.abc import Sequence

from umg_grpc.config.channels import EMBEDDING_PROTOCOLS
from umg_grpc.errors import UmgError
from umg_grpc.inprocess import Context
from umg_grpc.routing import PublicModel, Target
from umg_grpc.service.unary import Unary
from umg_grpc.tokens import TokenCounter
from umg_grpc.tokens.decoding import EMBEDDING_TOKENIZER, decode
from umg_grpc.tokens.loading import is_loaded
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.json import invalid
from umg_grpc.wire.report import untranslatable

SMALL_BYTES = 16 * 2**10
"""Of a request whose tokens are made text in a millisecond or so."""
TAKES_TOKENS = "embeddings"
"""The protocol whose providers take token ids."""


class EmbeddingServicer(rpc.EmbeddingServiceServicer):
    """`umg.v1.EmbeddingService`."""

    def __init__(self, unary: Unary[pb.EmbedRequest, pb.EmbedResponse], most_inputs: int) -> None:
        """`most_inputs`: of one call."""
        self._unary = unary
        self._most_inputs = most_inputs

    async def Embed(self, request: pb.EmbedRequest, context: Context) -> pb.EmbedResponse:
        """One vector an input, of the first channel that gives them."""
        served = await self._unary.admit(request)
        call, request, model = served
        if len(request.inputs) > self._most_inputs:
            problem = f"{len(request.inputs)} are more than the {self._most_inputs} that one call may have; send fewer"
            raise invalid("inputs", problem)
        _check_dimensions(request, model.described)
        adapt = _Readable(request, model) if any(given.HasField("tokens") for given in request.inputs) else None
        response = await self._unary.answer(served, pb.EmbedResponse, adapt)
        response.model = request.model
        if not response.HasField("usage"):
            tokens = await asyncio.to_thread(_count, request, model)
            response.usage.CopyFrom(pb.EmbeddingUsage(input_tokens=tokens, total_tokens=tokens, estimated=True))
        if not call.is_kept:
            call.usage = pb.Usage(input_tokens=response.usage.input_tokens, estimated=response.usage.estimated)
        return response


class _Readable:
    """A request with tokens, as each channel can read it."""

    def __init__(self, request: pb.EmbedRequest, model: PublicModel) -> None:
        self._request = request
        self._model = model
        self._texts: pb.EmbedRequest | None = None

    async def __call__(self, target: Target) -> pb.EmbedRequest:
        """As it is, or with texts alone. Raises UmgError(UNTRANSLATABLE) for tokens that are not known here."""
        if self._takes_tokens(target.channel.protocols):
            return self._request
        if self._texts is None:
            self._texts = await self._read()
        return self._texts

    async def _read(self) -> pb.EmbedRequest:
        loaded = is_loaded(self._model.tokenizer or EMBEDDING_TOKENIZER)
        if loaded and self._request.ByteSize() < SMALL_BYTES:
            return _as_texts(self._request, self._model)
        return await asyncio.to_thread(_as_texts, self._request, self._model)

    def _takes_tokens(self, protocols: Sequence[str]) -> bool:
        """Whether the format in which the channel is told it has them: the caller's own, else the preferred one."""
        spoken = [name for name in protocols if name in EMBEDDING_PROTOCOLS]
        own = self._request.source.format == TAKES_TOKENS and TAKES_TOKENS in spoken
        return own or spoken[:1] == [TAKES_TOKENS]


def _check_dimensions(request: pb.EmbedRequest, model: pb.Model) -> None:
    """Raises UmgError for a length that the model's vectors cannot have; of a model whose lengths nobody said, its
    provider judges.
    """
    if not model.HasField("embedding"):
        return
    if request.HasField("dimensions"):
        _check_length(request.dimensions, "dimensions", model)
    for position, given in enumerate(request.inputs):
        if given.HasField("dimensions"):
            _check_length(given.dimensions, f"inputs[{position}].dimensions", model)


def _check_length(length: int, field: str, model: pb.Model) -> None:
    made = model.embedding
    own, choices = made.default_dimensions, made.dimensions
    if not choices and not made.any_dimensions:
        message = f"`{field}`: the vectors of {model.id} always have {own} numbers; leave it out"
        raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=field)
    if made.any_dimensions and length > own:
        raise invalid(field, f"{model.id} makes vectors of at most {own} numbers; ask for no more")
    if choices and length not in choices:
        raise invalid(field, f"{model.id} makes vectors of {', '.join(map(str, choices))} numbers; choose one of them")


def _as_texts(request: pb.EmbedRequest, model: PublicModel) -> pb.EmbedRequest:
    """The request with texts alone, for who takes no tokens. Raises UmgError: UNTRANSLATABLE, CONTEXT_TOO_LONG."""
    made, most = pb.EmbedRequest(), model.described.input_token_limit
    made.CopyFrom(request)
    for position, given in enumerate(made.inputs):
        if given.HasField("tokens"):
            field = f"inputs[{position}].tokens.ids"
            if most and len(given.tokens.ids) > most:
                message = f"{field} is too long: {model.id} takes at most {most} tokens of a text; split it"
                raise UmgError(pb.ERROR_REASON_CONTEXT_TOO_LONG, message, field=field)
            try:
                given.text = decode(given.tokens.ids, model.tokenizer)
            except ValueError as error:
                raise untranslatable(field, f"{error}; send the text") from None
    return made


def _count(request: pb.EmbedRequest, model: PublicModel) -> int:
    """Tokens of all inputs, for providers that did not say."""
    counter = TokenCounter(model.family, model.tokenizer or (None if model.family else EMBEDDING_TOKENIZER))
    return sum(
        len(given.tokens.ids) if given.HasField("tokens") else counter.count_text(given.text)
        for given in request.inputs
    )
