"""Accepted bodies keep the rules of the schema, so that the service does not refuse them afterwards."""

import json

import pytest
from hypothesis import HealthCheck, given, settings

from tests.wire.rerank.strategies import Format
from tests.wire.test_rules import Bodies
from umg_grpc.errors import UmgError
from umg_grpc.service.pipeline.validation import check
from umg_grpc.wire.rerank import RERANK, RERANK_V2, ranked_texts
from umg_grpc.wire.rerank.documents import PlainDocument
from umg_grpc.wire.rerank.schema import RerankBody

BODIES = Bodies(RerankBody, {"model": "m", "query": "q", "documents": ["a", {"text": "b"}]}, plain=(PlainDocument,))


@pytest.mark.parametrize("codec", [RERANK, RERANK_V2], ids=lambda codec: codec.name)
def test_an_accepted_body_satisfies_the_rules_and_can_be_ranked(codec: Format) -> None:
    accepted = 0

    @settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
    @given(BODIES.some())
    def try_one(body: object) -> None:
        nonlocal accepted
        try:
            request = codec.decode_request(json.dumps(body).encode(), {}).canonical
        except UmgError:
            return
        accepted += 1
        check(request)
        assert len(ranked_texts(request)) == len(request.documents)

    try_one()
    assert accepted > 10  # otherwise nothing was tested
