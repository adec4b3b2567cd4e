"""Strategies of canonical requests and answers, and of bodies to the byte."""

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.unit.wire.chat.strategies import flags, json_objects, names, optional, set_fields, texts, words
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.rerank import RERANK_FORMAT, RERANK_V2
from umg_grpc.wire.unary_format_interface import UnaryFormat

Format = UnaryFormat[pb.RerankRequest, pb.RerankResponse]
FORMATS: dict[str, Format] = {RERANK_FORMAT.name: RERANK_FORMAT, RERANK_V2.name: RERANK_V2}

limits = st.integers(1, 2**31 - 1)
top_ns = st.integers(1, 9)
V1_OPTIONS = {"top_n": top_ns, "max_chunks_per_document": limits}
V2_OPTIONS = {"top_n": top_ns, "max_tokens_per_document": limits, "priority": st.integers(0, 999)}

plain_documents = st.builds(lambda text: pb.RerankDocument(text=text), texts)
blanks = st.sampled_from(["", " ", "\n\t", "\r\n "])


@st.composite
def object_texts(draw: DrawFn) -> str:
    """Draw a JSON object with a `text`, in any spelling."""
    fields = {**draw(json_objects), "text": draw(texts)}
    space, between = draw(blanks), draw(blanks)
    members = [f"{msgspec.json.encode(name).decode()}{space}:{_spelled(value)}" for name, value in fields.items()]
    return "{" + space + f"{between},".join(members) + between + "}"


def _spelled(value: object) -> str:
    written = msgspec.json.encode(value).decode()
    return f"{written}.0" if type(value) is int else written


object_documents = object_texts().map(lambda text: pb.RerankDocument(object_json=text))
documents = st.lists(plain_documents | object_documents, min_size=1, max_size=5)


def requests(options: dict[str, st.SearchStrategy[int]], *, plain: bool = False) -> st.SearchStrategy[pb.RerankRequest]:
    """Return a strategy of requests that a provider with these options can take in full; `plain`: documents are
    strings. The strategies of its fields are made once and not for each request.
    """
    some = st.lists(plain_documents, min_size=1, max_size=5) if plain else documents
    fields = set_fields(**options)

    @st.composite
    def request(draw: DrawFn) -> pb.RerankRequest:
        drawn = pb.RerankRequest(model=draw(words), query=draw(words), documents=draw(some))
        for name, value in draw(fields).items():
            setattr(drawn, name, value)
        return drawn

    return request()


requests_of_any_provider = requests(V1_OPTIONS | V2_OPTIONS)
rank_fields = st.lists(names, max_size=2)
optional_flags = optional(flags)


@st.composite
def faces_requests(draw: DrawFn) -> pb.RerankRequest:
    """Draw a request with any of the fields."""
    request = draw(requests_of_any_provider)
    request.rank_fields.extend(draw(rank_fields))
    if (returned := draw(optional_flags)) is not None:
        request.return_documents = returned
    return request


def body_of(request: pb.RerankRequest, more: dict[str, object] | None = None) -> bytes:
    """Return the request as a caller writes it, object documents to the byte."""
    fields: dict[str, object] = {
        "model": request.model,
        "query": request.query,
        "documents": [
            msgspec.Raw(document.object_json) if document.object_json else document.text
            for document in request.documents
        ],
    }
    if request.rank_fields:
        fields["rank_fields"] = list(request.rank_fields)
    for canonical, name in (
        ("top_n", "top_n"),
        ("return_documents", "return_documents"),
        ("max_chunks_per_document", "max_chunks_per_doc"),
        ("max_tokens_per_document", "max_tokens_per_doc"),
        ("priority", "priority"),
    ):
        if canonical in {field.name for field, _ in request.ListFields()}:
            fields[name] = getattr(request, canonical)
    return msgspec.json.encode({**fields, **(more or {})})


probabilities = st.floats(0, 1)
token_counts = st.integers(1, MAX_COUNT)
optional_units = optional(st.integers(1, 99))


@st.composite
def answers(draw: DrawFn, request: pb.RerankRequest) -> pb.RerankResponse:
    """Draw a response to the request as the service completes it."""
    documents = len(request.documents)
    places = draw(st.permutations(range(documents)))
    response = pb.RerankResponse(response_id=draw(words), model=request.model)
    for index in places[: min(request.top_n or documents, documents)]:
        result = response.results.add(index=index, relevance_score=draw(probabilities))
        if request.return_documents:
            result.document.CopyFrom(request.documents[index])
    response.usage.total_tokens = draw(token_counts)
    if (units := draw(optional_units)) is not None:
        response.usage.search_units = units
    return response
