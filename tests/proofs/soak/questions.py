"""Questions of the load: every format and operation, streamed or not, over HTTP and gRPC, each with a nonce that the
right answer repeats.
"""

import json
import random
from dataclasses import dataclass

from tests.pairs.table import TEXT_CLIENTS
from tests.proofs.soak.reading import packed_vectors, ranking
from tests.support.callers.requests import Json, Request
from tests.support.providers.faulty import right_answers
from tests.support.providers.faulty.image_answers import COUNT, label
from tests.support.providers.vectors import score, vector
from umg_grpc.v1 import pb

HTTP, GRPC = "HTTP", "gRPC"
TEXT = tuple(TEXT_CLIENTS)
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
GENERATE, EMBED, RERANK = "generate", "embed", "rerank"
IMAGE, IMAGE_BYTES, IMAGE_GROUP = "image", "image as bytes", "group of images"
"""Image operations: one image, `COUNT` of a stream; as bytes; a group of as many images as bytes."""


@dataclass(frozen=True)
class Question:
    """Kind of call. `format` is the format of its body; over gRPC, the operation with the schema's own fields."""

    over: str
    format: str
    stream: bool = False

    @property
    def id(self) -> str:
        return f"{self.over} {self.format}{', streamed' if self.stream else ''}"

    @property
    def is_text(self) -> bool:
        return self.format in TEXT or self.format == GENERATE


QUESTIONS = (
    *(Question(HTTP, name, stream) for name in TEXT for stream in (False, True)),
    *(Question(HTTP, name) for name in ("embeddings", "native_embeddings", "rerank")),
    Question(GRPC, GENERATE),
    Question(GRPC, GENERATE, stream=True),
    Question(GRPC, EMBED),
    Question(GRPC, RERANK),
)


def nonce(chance: random.Random) -> str:
    return "".join(chance.choices(LETTERS, k=16))


def prompt(nonce: str) -> str:
    """Return the prompt, which is also the text to embed and the query to rank for."""
    return f"say nonce-{nonce} again"


def documents(prompt: str) -> tuple[str, ...]:
    """Return the texts to rank. One of them contains the nonce, so that its score is unique to the call."""
    return ("bread and salt", "where the cat sleeps", f"to {prompt}")


def right(question: Question, nonce: str) -> str:
    """Return the text of the right answer to a prompt with the nonce, as `reading` decodes it."""
    if question.is_text:
        return right_answers.text(f"nonce-{nonce}")
    if question.format in (IMAGE, IMAGE_BYTES, IMAGE_GROUP):
        return "".join(label(f"nonce-{nonce}", at) for at in range(COUNT if question.stream else 1))
    query = prompt(nonce)
    if question.format in ("rerank", RERANK):
        ranked = sorted(
            ((at, score(query, text)) for at, text in enumerate(documents(query))), key=lambda each: -each[1]
        )
        return ranking(ranked).text
    return packed_vectors([vector(query)]).text


def path(question: Question, model: str) -> str:
    match question.format:
        case "embeddings":
            return "/v1/embeddings"
        case "native_embeddings":
            return f"/v1beta/models/{model}:batchEmbedContents"
        case "rerank":
            return "/v1/rerank"
        case text:
            return TEXT_CLIENTS[text].path(model, question.stream)


def body(question: Question, model: str, prompt: str) -> bytes:
    return json.dumps(_body(question, model, prompt)).encode()


def _body(question: Question, model: str, prompt: str) -> Json:
    match question.format:
        case "embeddings":
            return {"model": model, "input": [prompt], "encoding_format": "float"}
        case "native_embeddings":
            return {"requests": [{"model": f"models/{model}", "content": {"parts": [{"text": prompt}]}}]}
        case "rerank":
            return {"model": model, "query": prompt, "documents": documents(prompt)}
        case text:
            return TEXT_CLIENTS[text].body(Request(prompt), model, stream=question.stream)


def generate(model: str, prompt: str) -> pb.GenerateRequest:
    """Return the request in the schema's own fields."""
    message = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text=prompt))])
    return pb.GenerateRequest(model=model, messages=[message])


def embed(model: str, prompt: str) -> pb.EmbedRequest:
    return pb.EmbedRequest(model=model, inputs=[pb.EmbeddingInput(text=prompt)])


def rerank(model: str, prompt: str) -> pb.RerankRequest:
    ranked = [pb.RerankDocument(text=text) for text in documents(prompt)]
    return pb.RerankRequest(model=model, query=prompt, documents=ranked)


def make_images(question: Question, model: str, prompt: str) -> pb.GenerateImageRequest:
    request, count = pb.GenerateImageRequest(model=model, prompt=prompt), COUNT if question.stream else 1
    if question.format != IMAGE:
        request.response_format = pb.IMAGE_RESPONSE_FORMAT_B64_JSON
    if question.format == IMAGE_GROUP:
        request.sequential_image_generation = pb.SEQUENTIAL_IMAGE_GENERATION_AUTO
        request.max_sequential_images = count
    elif count > 1:
        request.n = count
    return request
