"""Bodies of formats whose path, instead of the member `model`, may name the model, as at Azure OpenAI."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw

from umg_grpc.wire.core.json_decoding import MEMBERS_DECODER
from umg_grpc.wire.core.multipart_forms import FormPart

MODEL_MEMBER = "model"


def with_model(body: bytes, model: str) -> bytes:
    """Return a JSON body with `model` set. A body that is no object stays unchanged: its decoder raises the error."""
    try:
        members = MEMBERS_DECODER.decode(body)
    except (ValueError, RecursionError):
        return body
    members[MODEL_MEMBER] = Raw(msgspec.json.encode(model))
    return msgspec.json.encode(members)


def form_of_model(parts: Iterable[FormPart], model: str) -> Iterator[FormPart]:
    """Yield the parts of a form with the field `model` set to `model`. If that is "", yield `parts` unchanged."""
    if not model:
        yield from parts
        return
    yield FormPart(MODEL_MEMBER, None, model.encode())
    yield from (part for part in parts if part.name != MODEL_MEMBER)
