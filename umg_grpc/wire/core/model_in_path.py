"""Bodies of formats whose path may name the model, as Azure OpenAI does, in place of the member `model`."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw

from umg_grpc.wire.core.json import MEMBERS_DECODER
from umg_grpc.wire.core.multipart_forms import FormPart

MODEL_MEMBER = "model"


def with_model(body: bytes, model: str) -> bytes:
    """Return a JSON body with `model` set; one that is no object stays as it is, since its decoder raises the error."""
    try:
        members = MEMBERS_DECODER.decode(body)
    except (ValueError, RecursionError):
        return body
    members[MODEL_MEMBER] = Raw(msgspec.json.encode(model))
    return msgspec.json.encode(members)


def form_of_model(parts: Iterable[FormPart], model: str) -> Iterator[FormPart]:
    """Yield the parts of a form with `model` as its field `model`; those of `parts` if `model` is ""."""
    if not model:
        yield from parts
        return
    yield FormPart(MODEL_MEMBER, None, model.encode())
    yield from (part for part in parts if part.name != MODEL_MEMBER)
