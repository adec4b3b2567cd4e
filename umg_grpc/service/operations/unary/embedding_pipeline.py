"""Pipeline of embedding: checks of the inputs, texts in place of token ids, and usage."""

import asyncio
from collections.abc import Mapping, Sequence

from umg_grpc.base.errors import UmgError
from umg_grpc.config.file_sections import Limits
from umg_grpc.operations.embedding_operation import EMBED_OPERATION
from umg_grpc.routing import PublicModel, Target
from umg_grpc.service.operations.unary.unary_pipeline import UnaryCall, UnaryPipeline
from umg_grpc.service.pipeline.base_pipeline import PipelineContext, RequestStep
from umg_grpc.service.pipeline.step_order import INPUTS, Step
from umg_grpc.tokens import TokenCounter
from umg_grpc.tokens.token_decoding import EMBEDDING_TOKENIZER, decode
from umg_grpc.tokens.vocabulary_cache import is_loaded
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import invalid, missing
from umg_grpc.wire.dropped_fields_report import untranslatable
from umg_grpc.wire.embedding_formats import EMBEDDING_UPSTREAMS

SMALL_BYTES = 16 * 2**10
"""Size of a request up to which its token ids are decoded in the event loop, in about 1 ms, and not in a thread."""


class EmbeddingPipeline(UnaryPipeline[pb.EmbedRequest, pb.EmbedResponse]):
    """Pipeline of embedding."""

    def __init__(self, context: PipelineContext, limits: Limits) -> None:
        super().__init__(context, EMBED_OPERATION)
        self._max_inputs = limits.embedding_inputs

    def _request_steps(self) -> Mapping[Step, RequestStep[UnaryCall[pb.EmbedRequest]]]:
        return {**super()._request_steps(), INPUTS: self._check_inputs}

    def _check_inputs(self, admitted: UnaryCall[pb.EmbedRequest]) -> None:
        """Check the number of inputs and the length of their vectors. Raise UmgError."""
        request, model = admitted.request, admitted.model
        if not request.inputs:  # a body of Ollama without a text, which the HTTP face answers itself
            raise missing("inputs")
        if len(request.inputs) > self._max_inputs:
            problem = f"{len(request.inputs)} are more than the {self._max_inputs} that one call may have; send fewer"
            raise invalid("inputs", problem)
        _check_dimensions(request, model.described)
        if any(given.HasField("tokens") for given in request.inputs):
            admitted.adapt = _TokenAdapter(request, model)

    async def _settle(self, admitted: UnaryCall[pb.EmbedRequest], response: pb.EmbedResponse) -> None:
        call, request = admitted.call, admitted.request
        response.model = request.model
        if not response.HasField("usage"):
            tokens = await asyncio.to_thread(_count, request, admitted.model)
            response.usage.CopyFrom(pb.EmbeddingUsage(input_tokens=tokens, total_tokens=tokens, estimated=True))
        if not call.facts.is_cached:
            call.facts.usage = pb.Usage(input_tokens=response.usage.input_tokens, estimated=response.usage.estimated)


class _TokenAdapter:
    """Converter of a request for channels that accept only text: its inputs of token ids become texts."""

    def __init__(self, request: pb.EmbedRequest, model: PublicModel) -> None:
        self._request = request
        self._model = model
        self._texts: pb.EmbedRequest | None = None

    async def __call__(self, target: Target) -> pb.EmbedRequest:
        """Return the request, with token ids decoded to text if needed. Raise UmgError(UNTRANSLATABLE) if unknown."""
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
        spoken = [name for name in protocols if name in EMBED_OPERATION.protocols]
        own = self._request.source.format
        return any(EMBEDDING_UPSTREAMS[name].takes_tokens for name in ([own] if own in spoken else spoken[:1]))


def _check_dimensions(request: pb.EmbedRequest, model: pb.Model) -> None:
    """Raise UmgError for a number of dimensions that the model does not support; accept any if these are unknown."""
    if not model.HasField("embedding"):
        return
    if request.HasField("dimensions"):
        _check_length(request.dimensions, "dimensions", model)
    for position, given in enumerate(request.inputs):
        if given.HasField("dimensions"):
            _check_length(given.dimensions, f"inputs[{position}].dimensions", model)


def _check_length(length: int, field: str, model: pb.Model) -> None:
    known = model.embedding
    own, choices = known.default_dimensions, known.dimensions
    if not choices and not known.any_dimensions:
        message = f"`{field}`: the vectors of {model.id} always have {own} numbers; leave it out"
        raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=field)
    if known.any_dimensions and length > own:
        raise invalid(field, f"{model.id} makes vectors of at most {own} numbers; request no more")
    if choices and length not in choices:
        raise invalid(field, f"{model.id} makes vectors of {', '.join(map(str, choices))} numbers; choose one of them")


def _as_texts(request: pb.EmbedRequest, model: PublicModel) -> pb.EmbedRequest:
    """Return the request with its token ids decoded to text."""
    texts, max_tokens = pb.EmbedRequest(), model.described.input_token_limit
    texts.CopyFrom(request)
    for position, given in enumerate(texts.inputs):
        if given.HasField("tokens"):
            field = f"inputs[{position}].tokens.ids"
            if max_tokens and len(given.tokens.ids) > max_tokens:
                message = f"{field} is too long: {model.id} accepts at most {max_tokens} tokens of a text; split it"
                raise UmgError(pb.ERROR_REASON_CONTEXT_TOO_LONG, message, field=field)
            try:
                given.text = decode(given.tokens.ids, model.tokenizer)
            except ValueError as error:
                raise untranslatable(field, f"{error}; send the text") from None
    return texts


def _count(request: pb.EmbedRequest, model: PublicModel) -> int:
    counter = TokenCounter(model.family, model.tokenizer or (None if model.family else EMBEDDING_TOKENIZER))
    return sum(
        len(given.tokens.ids) if given.HasField("tokens") else counter.count_text(given.text)
        for given in request.inputs
    )
