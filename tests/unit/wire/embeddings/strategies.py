"""Strategies of canonical requests and answers of the formats that embed."""

import struct

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.unit.wire.chat.strategies import counts, optional, set_fields, words
from umg_grpc.v1 import pb

lengths = st.integers(1, 2**31 - 1)
task_types = st.sampled_from(["RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT", "CLUSTERING", "A_NEW_ONE"])
tokens = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=5)
text_inputs = words.map(lambda text: pb.EmbeddingInput(text=text))
token_inputs = tokens.map(lambda ids: pb.EmbeddingInput(tokens=pb.EmbeddingTokens(ids=ids)))

plain_requests = st.builds(
    lambda inputs, extra: pb.EmbedRequest(inputs=inputs, encoding=pb.EMBEDDING_ENCODING_BASE64, **extra),
    st.lists(text_inputs, min_size=1, max_size=4) | st.lists(token_inputs, min_size=1, max_size=4),
    set_fields(dimensions=lengths, user=words),
)
"""Requests that the embeddings format can express."""


@st.composite
def native_requests(draw: DrawFn, most: int = 4) -> pb.EmbedRequest:
    """Draw a request that the native format can express. A value that all inputs share is set on the request."""
    request = pb.EmbedRequest(inputs=draw(st.lists(text_inputs, min_size=1, max_size=most)))
    for item in request.inputs:
        if (title := draw(optional(words))) is not None:
            item.title = title
    for name, values in (("task_type", task_types), ("dimensions", lengths)):
        choices = [draw(optional(values)) for _ in request.inputs]
        alike = choices.count(choices[0]) == len(choices)
        for target, value in zip([request] if alike else request.inputs, choices, strict=False):
            if value is not None:
                setattr(target, name, value)
    return request


def vectors(length: int) -> st.SearchStrategy[bytes]:
    """Return packed vectors of this length."""
    numbers = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=length, max_size=length)
    return numbers.map(lambda drawn: struct.pack(f"<{length}f", *drawn))


@st.composite
def responses(draw: DrawFn, inputs: int, length: int) -> pb.EmbedResponse:
    """Draw a response of the model `m` with this number of vectors of this length."""
    used = pb.EmbeddingUsage(input_tokens=draw(counts), total_tokens=draw(counts))
    values = draw(st.lists(vectors(length), min_size=inputs, max_size=inputs))
    return pb.EmbedResponse(model="m", embeddings=[pb.Embedding(values=each) for each in values], usage=used)
