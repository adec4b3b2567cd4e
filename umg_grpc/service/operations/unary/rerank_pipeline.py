"""Pipeline of reranking: number and order of the documents, and usage."""

import asyncio
import secrets
from collections.abc import Mapping

from umg_grpc.config.file_sections import Limits
from umg_grpc.operations.rerank_operation import RERANK_OPERATION
from umg_grpc.routing import PublicModel
from umg_grpc.service.operations.unary.unary_pipeline import UnaryCall, UnaryPipeline
from umg_grpc.service.pipeline.base_pipeline import PipelineContext, RequestStep
from umg_grpc.service.pipeline.step_order import INPUTS, Step
from umg_grpc.tokens import TokenCounter
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import invalid


class RerankPipeline(UnaryPipeline[pb.RerankRequest, pb.RerankResponse]):
    """Pipeline of reranking."""

    def __init__(self, context: PipelineContext, limits: Limits) -> None:
        super().__init__(context, RERANK_OPERATION)
        self._max_documents = limits.rerank_documents

    def _request_steps(self) -> Mapping[Step, RequestStep[UnaryCall[pb.RerankRequest]]]:
        return {**super()._request_steps(), INPUTS: self._check_documents}

    def _check_documents(self, admitted: UnaryCall[pb.RerankRequest]) -> None:
        if (count := len(admitted.request.documents)) > self._max_documents:
            raise invalid("documents", f"{count} are more than the {self._max_documents} of one call; send fewer")

    async def _settle(self, admitted: UnaryCall[pb.RerankRequest], response: pb.RerankResponse) -> None:
        call, request = admitted.call, admitted.request
        response.model = request.model
        _sort(response, request)
        response.response_id = response.response_id or f"rerank-{secrets.token_hex(16)}"
        if response.usage.total_tokens == 0:
            response.usage.total_tokens = await asyncio.to_thread(_count, request, admitted.model)
            response.usage.estimated = True
        if not call.facts.is_cached:
            usage = response.usage  # providers that bill by search units state these
            call.facts.usage = pb.Usage(
                input_tokens=usage.total_tokens, web_search_requests=usage.search_units, estimated=usage.estimated
            )


def _sort(response: pb.RerankResponse, request: pb.RerankRequest) -> None:
    """Sort the results by descending score, cut them to `top_n`, and add the documents' texts if requested."""
    ranked = sorted(response.results, key=lambda result: (-result.relevance_score, result.index))
    del response.results[:]
    response.results.extend(ranked[: request.top_n] if request.HasField("top_n") else ranked)
    if request.return_documents:
        for result in response.results:
            result.document.CopyFrom(request.documents[result.index])


def _count(request: pb.RerankRequest, model: PublicModel) -> int:
    counter = TokenCounter(model.family, model.tokenizer)
    texts = [document.text or document.object_json for document in request.documents]
    return sum(map(counter.count_text, [request.query, *texts]))
