"""Requests and answers come back unchanged, through both shapes."""

from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.chat.strategies import additions
from tests.unit.wire.laws import members, modest
from tests.unit.wire.rerank import strategies
from tests.unit.wire.rerank.strategies import FORMATS, V1_OPTIONS, V2_OPTIONS, Format, body_of
from umg_grpc.service.pipeline.schema_validation import check
from umg_grpc.v1 import pb
from umg_grpc.wire.rerank import ranked_texts
from umg_grpc.wire.rerank.request import OPTION_FIELDS
from umg_grpc.wire.text_format_interface import UpstreamRequest
from umg_grpc.wire.unary_format_interface import ClientShape

FORMAT_OPTIONS = {"rerank": V1_OPTIONS, "rerank_v2": V2_OPTIONS}
PLAIN_REQUESTS = {name: strategies.requests(options, plain=True) for name, options in FORMAT_OPTIONS.items()}
V1_REQUESTS = strategies.requests(V1_OPTIONS)
FACES_REQUESTS = strategies.faces_requests()


def decoded(codec: Format, body: bytes) -> pb.RerankRequest:
    """Return the request without its source."""
    request = codec.decode_request(body, {}).canonical
    assert (request.source.format, request.source.body) == (codec.name, body)
    request.ClearField("source")
    return request


def sent(face: Format, provider: Format, body: bytes) -> UpstreamRequest:
    request, notes = face.decode_request(body, {})
    return provider.encode_request(request, "theirs", notes)


@pytest.mark.parametrize("name", FORMATS)
@modest
@given(st.data())
def test_a_request_survives_the_wire_and_back(name: str, data: st.DataObject) -> None:
    request = data.draw(PLAIN_REQUESTS[name])
    codec = FORMATS[name]
    usage = codec.encode_request(request, request.model)
    assert (usage.path, usage.headers, usage.report.lost) == ("/rerank", {}, 0)
    back = decoded(codec, usage.body)
    if name == "rerank":  # its providers get `return_documents: false`
        assert back.HasField("return_documents")
        assert not back.return_documents
        back.ClearField("return_documents")
    if request.top_n:
        request.top_n = min(request.top_n, len(request.documents))
    assert back == request


@modest
@given(FACES_REQUESTS)
def test_a_body_is_decoded_completely_and_satisfies_the_rules(request: pb.RerankRequest) -> None:
    body = body_of(request)
    for codec in FORMATS.values():
        assert decoded(codec, body) == request
        check(codec.decode_request(body, {}).canonical)


@modest
@given(FACES_REQUESTS, additions)
def test_unknown_fields_are_noted_by_name(request: pb.RerankRequest, more: dict[str, object]) -> None:
    for codec in FORMATS.values():
        notes = codec.decode_request(body_of(request, more), {}).notes
        assert notes.uncarried == [name for name, value in more.items() if value is not None]


@pytest.mark.parametrize("name", FORMATS)
@modest
@given(FACES_REQUESTS, additions)
def test_a_body_for_a_provider_of_the_same_shape_loses_no_field(
    name: str, request: pb.RerankRequest, more: dict[str, object]
) -> None:
    body = body_of(request, more)
    usage = sent(FORMATS[name], FORMATS[name], body)
    expected = members(body) | {"model": b'"theirs"', "documents": msgspec.json.encode(ranked_texts(request))}
    for done_here in ("return_documents", "rank_fields"):
        expected.pop(done_here, None)
    if name == "rerank":
        expected["return_documents"] = b"false"
    if request.top_n:
        expected["top_n"] = b"%d" % min(request.top_n, len(request.documents))
    assert (members(usage.body), usage.report.lost) == (expected, 0)


@pytest.mark.parametrize("name", FORMATS)
@modest
@given(FACES_REQUESTS, additions)
def test_a_body_for_the_other_shape_has_its_supported_fields_and_the_rest_is_reported(
    name: str, request: pb.RerankRequest, more: dict[str, object]
) -> None:
    (other,) = FORMATS.keys() - {name}
    usage = sent(FORMATS[name], FORMATS[other], body_of(request, more))
    set_options = {field.name for field, _ in request.ListFields()} & OPTION_FIELDS.keys()
    takes = set_options & FORMAT_OPTIONS[other].keys()
    lost = {field for field in set_options - takes if getattr(request, field)}  # a priority of 0 has no effect
    written = {"model", "query", "documents", *(OPTION_FIELDS[field] for field in takes)}
    assert members(usage.body).keys() == written | ({"return_documents"} if other == "rerank" else set())
    unknown = {name for name, value in more.items() if value is not None}
    assert usage.report.dropped == dict.fromkeys(lost | unknown)


@modest
@given(st.data())
def test_an_answer_survives_the_wire_and_back(data: st.DataObject) -> None:
    request = data.draw(FACES_REQUESTS)
    answer = data.draw(strategies.answers(request))
    expected = pb.RerankResponse()
    expected.CopyFrom(answer)
    for result in expected.results:
        result.ClearField("document")  # the request has it
    for codec, shape in product(FORMATS.values(), ClientShape):
        body = codec.encode_response(answer, request, shape)
        assert codec.decode_response(body, request, False) == expected, (codec.name, shape)


@pytest.mark.parametrize("name", FORMATS)
@modest
@given(st.data())
def test_documents_are_returned_as_sent(name: str, data: st.DataObject) -> None:
    request = data.draw(FACES_REQUESTS)
    request.return_documents = True
    request = FORMATS[name].decode_request(body_of(request), {}).canonical
    answer = data.draw(strategies.answers(request))
    sent = msgspec.json.decode(request.source.body, type=dict[str, msgspec.Raw])
    written = msgspec.json.decode(sent["documents"], type=list[msgspec.Raw])
    for shape in ClientShape:
        body = msgspec.json.decode(FORMATS[name].encode_response(answer, request, shape), type=dict[str, msgspec.Raw])
        results = msgspec.json.decode(body["results"], type=list[dict[str, msgspec.Raw]])
        as_object = name == "rerank_v2" or shape is ClientShape.SDK
        for usage, result in zip(results, answer.results, strict=True):
            raw = bytes(written[result.index])
            if raw.startswith(b'"') and as_object:
                raw = b'{"text":%b}' % raw
            assert bytes(usage["document"]) == raw


@given(st.data())
def test_documents_are_absent_unless_requested(data: st.DataObject) -> None:
    request = data.draw(V1_REQUESTS)
    answer = data.draw(strategies.answers(request))
    for codec in FORMATS.values():
        body = msgspec.json.decode(codec.encode_response(answer, request, ClientShape.SDK))
        assert all(result.keys() == {"index", "relevance_score"} for result in body["results"]), codec.name
