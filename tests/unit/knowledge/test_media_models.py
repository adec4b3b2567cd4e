"""Rules of vendors for their image and video models (`data/media_models.json`)."""

import re
from dataclasses import dataclass

import pytest

from umg_grpc.knowledge.media_model_rules import FRAME_ROLES, MEDIA_MODELS, MediaModel, media_model
from umg_grpc.v1 import pb

PARAMETERS = {*pb.VideoParameters.DESCRIPTOR.fields_by_name, *pb.GenerateImageRequest.DESCRIPTOR.fields_by_name}


@pytest.mark.parametrize("row", MEDIA_MODELS, ids=lambda row: f"{row.protocol} {row.models}")
def test_a_row_names_parameters_of_the_schema_and_its_source(row: MediaModel) -> None:
    combined = {name for rule in row.conditions for name in (rule.parameter, rule.needs)}
    assert {*row.without, *row.values, *row.ranges, *combined} <= {*PARAMETERS, *FRAME_ROLES}
    assert row.source
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", row.as_of)
    assert row.models == row.models.lower()


@dataclass(frozen=True)
class Known:
    id: str
    most_seconds: int | None
    lacks_frames: bool


KNOWN = [
    Known(id="doubao-seedance-1-0-pro-250528", most_seconds=None, lacks_frames=False),
    Known(id="doubao-seedance-2-0-260128", most_seconds=15, lacks_frames=True),
    Known(id="dreamina-seedance-2-0-fast-260128", most_seconds=15, lacks_frames=True),
    Known(id="vendor/seedance-2-0", most_seconds=15, lacks_frames=True),
    Known(id="doubao-seedance-2-5-260628", most_seconds=None, lacks_frames=True),
    Known(id="doubao-seedance-9-0-300101", most_seconds=None, lacks_frames=True),
]


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: case.id)
def test_a_model_has_the_first_row_that_matches_and_a_newer_one_the_newest(case: Known) -> None:
    row = media_model("vidD", case.id)
    assert row is not None
    assert row.ranges.get("duration_seconds", (0, None))[1] == case.most_seconds
    assert ("frames" in row.without) is case.lacks_frames


@pytest.mark.parametrize("model", ["ep-20260101-abcde", "m"])
def test_a_model_without_a_row_has_no_rules(model: str) -> None:
    assert media_model("vidD", model) is None
    assert media_model("vidA", "doubao-seedance-2-0-260128") is None
