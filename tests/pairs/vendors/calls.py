"""Recorded calls: the requests of callers, the bodies that were sent to vendors, and their refusals."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import msgspec
from msgspec import Struct, field

from tests.pairs.vendors.features import EMBEDDING_FEATURES, FACES, TEXT_FEATURES
from tests.pairs.vendors.gateway import Model
from tests.pairs.vendors.refusal import Json
from tests.pairs.vendors.runner import Result, models, run

EMBEDDING_NAMES = {"embeddings": "embeddings", "native-embedding": "native_embedding"}
"""Name of a face of embeddings in the file -> its format."""


class RecordedCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Call that went wrong at a vendor."""

    id: str
    """Model, face and feature, separated by `|`."""
    vendor: str
    path: str
    request: Json
    sent: Json | None
    """Body that went to the vendor."""
    sent_protocol: str | None
    refusal: str | None = field(name="vendor_says")
    at: str | None = field(name="field")
    """Name of the field that the vendor refuses."""
    today: str = ""
    dropped: str = ""

    @property
    def model(self) -> Model:
        name = unquote(self.id.split("|")[0])
        found = (model for model in models() if (model.vendor, model.id) == (self.vendor, name))
        return next(found, Model(self.vendor, name))

    @property
    def face(self) -> str:
        return self.id.split("|")[1]

    @property
    def feature(self) -> str:
        return self.id.split("|")[2]


def recorded(path: Path) -> list[RecordedCall]:
    """Return the calls of a file of JSON lines."""
    return [msgspec.json.decode(line, type=RecordedCall) for line in path.read_bytes().splitlines()]


def results(path: Path) -> Iterator[Result]:
    """Yield the outcomes of the calls of a file."""
    for call in recorded(path):
        request = {name: value for name, value in call.request.items() if name != "model"}
        if call.face in EMBEDDING_NAMES:
            yield run(call.model, EMBEDDING_NAMES[call.face], EMBEDDING_FEATURES[call.feature], request)
        elif call.feature in TEXT_FEATURES and call.face in FACES:
            # the recorded request of a tool turn is that of its first turn
            feature = "tools" if call.feature == "tool-turn" else call.feature
            yield run(call.model, call.face, TEXT_FEATURES[feature], request)
