"""Table of the places of input in the bodies of video models."""

import re

import pytest

from umg_grpc.knowledge.video_member_places import VIDEO_PLACES, video_places
from umg_grpc.v1 import pb
from umg_grpc.wire.video import VIDEO_PROTOCOLS

DATE = re.compile(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]")
PARAMETERS = set(pb.VideoParameters.DESCRIPTOR.fields_by_name)


def test_rows_have_a_source_a_date_known_protocols_and_known_parameters() -> None:
    for row in VIDEO_PLACES:
        assert row.source
        assert DATE.fullmatch(row.as_of)
        assert row.protocol in VIDEO_PROTOCOLS
        assert set(row.without) <= PARAMETERS
        assert row.one_image in row.media or not {"first_frame", "reference_image"} & row.media.keys()


def test_a_row_is_reached_by_an_id_that_no_earlier_row_has() -> None:
    patterns = [(row.protocol, row.models) for row in VIDEO_PLACES]
    assert len(set(patterns)) == len(patterns)
    assert VIDEO_PLACES[-1].models == ".*"


def test_an_id_is_found_in_any_case_and_behind_a_path() -> None:
    assert video_places("vidC", "alibaba/Wan3.0-Video") is video_places("vidC", "wan3.0-video")
    with pytest.raises(LookupError):
        video_places("vidA", "sora-2")
