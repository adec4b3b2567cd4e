"""Accepted bodies keep the rules of the schema, so that the service does not refuse them afterwards."""

import json

import pytest

from tests.unit.wire.bodies import Bodies
from tests.unit.wire.rerank.strategies import Format
from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline.schema_validation import check
from umg_grpc.wire.rerank import RERANK_FORMAT, RERANK_V2, ranked_texts
from umg_grpc.wire.rerank.document_text import PlainDocument
from umg_grpc.wire.rerank.schema import RerankBody

BODIES = Bodies(RerankBody, {"model": "m", "query": "q", "documents": ["a", {"text": "b"}]}, plain=(PlainDocument,))


@pytest.mark.parametrize("codec", [RERANK_FORMAT, RERANK_V2], ids=lambda codec: codec.name)
def test_an_accepted_body_satisfies_the_rules_and_can_be_ranked(codec: Format) -> None:
    accepted = 0
    for body in BODIES.some():
        try:
            request = codec.decode_request(json.dumps(body).encode(), {}).canonical
        except UmgError:
            continue
        accepted += 1
        check(request)
        assert len(ranked_texts(request)) == len(request.documents)
    assert accepted > 100  # otherwise nothing was tested
