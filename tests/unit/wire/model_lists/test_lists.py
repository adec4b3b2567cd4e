"""Model lists, one directory per case: `list.txtpb` is the service's list, and beside it is the body of each shape.

`pytest --record` with the path of this file writes the bodies again, to be reviewed as a diff.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from google.protobuf import text_format

from tests.support.snapshots import Snapshots
from umg_grpc.v1 import pb
from umg_grpc.wire.core.model_list_page_token import encode_token, page_before
from umg_grpc.wire.model_lists import MODEL_LISTS

HERE = Path(__file__).parent
FILES = {
    "models": "chat.json",
    "messages_models": "messages.json",
    "native_models": "native.json",
    "cohere_models": "cohere.json",
    "ollama_models": "ollama.json",
}
DESCRIBED_ALONE = ("ollama_models", "ollama_running")
"""Shapes whose lists have less of a model than its description alone."""


@dataclass(frozen=True)
class Case:
    path: Path

    @property
    def id(self) -> str:
        return self.path.name

    def listed(self) -> pb.ListModelsResponse:
        return text_format.Parse((self.path / "list.txtpb").read_text(encoding="utf-8"), pb.ListModelsResponse())

    def made(self) -> Iterator[tuple[str, str]]:
        """Yield (file, content) of each shape."""
        for face, file in FILES.items():
            body = MODEL_LISTS[face].encode_list(self.listed(), pb.ListModelsRequest())
            yield file, msgspec.json.format(body, indent=2).decode() + "\n"


CASES = [Case(path.parent) for path in sorted(HERE.glob("*/list.txtpb"))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_model_list_has_its_golden_body(case: Case, snapshots: Snapshots) -> None:
    snapshots.check(case.path, case.made())


@pytest.mark.parametrize("face", [face for face in MODEL_LISTS if face not in DESCRIBED_ALONE])
def test_a_single_model_is_encoded_as_in_the_list(face: str) -> None:
    shape, case = MODEL_LISTS[face], Case(HERE / "described")
    for model in case.listed().models:
        alone = shape.encode_model(model)
        assert alone in shape.encode_list(pb.ListModelsResponse(models=[model]), pb.ListModelsRequest())


def test_both_faces_of_the_native_shape_list_the_same() -> None:
    request = pb.ListModelsRequest()
    for case in CASES:
        by_path, by_key = (
            MODEL_LISTS[face].encode_list(case.listed(), request) for face in ("native_models", "key_native_models")
        )
        assert by_path == by_key


def test_has_more_refers_to_the_direction_of_the_page() -> None:
    encode, model = MODEL_LISTS["messages_models"].encode_list, pb.Model(id="m")
    for response, behind, before in (
        (pb.ListModelsResponse(models=[model]), False, False),
        (pb.ListModelsResponse(models=[model], next_page_token="t"), True, False),
        (pb.ListModelsResponse(models=[model], previous_page_token="t"), False, True),
    ):
        for request, more in (
            (pb.ListModelsRequest(), behind),
            (pb.ListModelsRequest(page_token=encode_token(page_before("z"))), before),
        ):
            assert msgspec.json.decode(encode(response, request))["has_more"] is more
