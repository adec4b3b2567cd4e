"""What is asked: every format and operation, streamed or not, over HTTP and gRPC, by a nonce that the right answer
repeats.
"""

import json
import random
from dataclasses import dataclass

from tests.faults import answers
from tests.matrix.faces import FACES, Json, Wish, asked_for_a_stream
from tests.soak.reading import packed_vectors, ranking
from tests.vectors.making import score, vector
from umg_grpc.v1 import pb

HTTP, GRPC = "HTTP", "gRPC"
TEXT = tuple(FACES)
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
GENERATE, EMBED, RERANK = "generate", "embed", "rerank"


@dataclass(frozen=True)
class Question:
    """One way to ask. `format` is whose bodies it has; over gRPC it is the operation, in the schema's own fields."""

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
STREAMS = tuple(question for question in QUESTIONS if question.stream)


def nonce(chance: random.Random) -> str:
    """One that no other call has."""
    return "".join(chance.choices(LETTERS, k=16))


def prompt(nonce: str) -> str:
    """What is asked, generated, embedded or ranked for."""
    return f"say nonce-{nonce} again"


def documents(prompt: str) -> tuple[str, ...]:
    """What is ranked: one of them by the nonce, so that its score is no other call's."""
    return ("bread and salt", "where the cat sleeps", f"to {prompt}")


def right(question: Question, nonce: str) -> str:
    """The text of the right answer to a prompt with the nonce, as `reading` has it."""
    if question.is_text:
        return answers.text(f"nonce-{nonce}")
    asked = prompt(nonce)
    if question.format in ("rerank", RERANK):
        ranked = sorted(
            ((at, score(asked, text)) for at, text in enumerate(documents(asked))), key=lambda each: -each[1]
        )
        return ranking(ranked).text
    return packed_vectors([vector(asked)]).text


def path(question: Question, model: str) -> str:
    """Where it is asked over HTTP."""
    match question.format:
        case "embeddings":
            return "/v1/embeddings"
        case "native_embeddings":
            return f"/v1beta/models/{model}:batchEmbedContents"
        case "rerank":
            return "/v1/rerank"
        case text:
            return FACES[text].path(model, question.stream)


def body(question: Question, model: str, prompt: str) -> bytes:
    """The body of it over HTTP."""
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
            face = FACES[text]
            asked = face.body(Wish(prompt), model, None)
            return asked_for_a_stream(face, asked) if question.stream else asked


def generate(model: str, prompt: str) -> pb.GenerateRequest:
    """The request in the schema's own fields."""
    message = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text=prompt))])
    return pb.GenerateRequest(model=model, messages=[message])


def embed(model: str, prompt: str) -> pb.EmbedRequest:
    return pb.EmbedRequest(model=model, inputs=[pb.EmbeddingInput(text=prompt)])


def rerank(model: str, prompt: str) -> pb.RerankRequest:
    ranked = [pb.RerankDocument(text=text) for text in documents(prompt)]
    return pb.RerankRequest(model=model, query=prompt, documents=ranked)
