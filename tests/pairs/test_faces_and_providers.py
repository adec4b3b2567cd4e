"""Table of faces and providers: it has all that the product serves and calls, and every list of all of them is taken from
it.
"""

import re
from pathlib import Path

import pytest

from tests.pairs.table import FACES, PROVIDERS, TEXT_FACES, Kind, Provider, protocols_of, strict_fake
from tests.support.providers.faulty.right_answers import PATHS
from umg_grpc.operations.embedding_operation import EMBED_OPERATION
from umg_grpc.operations.generation_operation import GENERATE_OPERATION
from umg_grpc.operations.image_operation import IMAGE_GENERATION
from umg_grpc.operations.rerank_operation import RERANK_OPERATION
from umg_grpc.operations.video_operation import VIDEO_CREATION
from umg_grpc.wire import TEXT_FACES as TEXT_FACES_OF_PRODUCT
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.rerank import RERANK_FORMATS

ROOM = Path(__file__).parent
FACE_TABLES = {Kind.TEXT: TEXT_FACES_OF_PRODUCT, Kind.EMBEDDING: EMBEDDING_FORMATS, Kind.RERANKING: RERANK_FORMATS}
PROTOCOLS = {
    Kind.TEXT: GENERATE_OPERATION.protocols,
    Kind.EMBEDDING: EMBED_OPERATION.protocols,
    Kind.RERANKING: RERANK_OPERATION.protocols,
    Kind.IMAGE: IMAGE_GENERATION.protocols,
    Kind.VIDEO: VIDEO_CREATION.protocols,
}
GATEWAYS = {"umg_images", "umg_video"}
"""Providers that are gateways of this project: `tests/unit/e2e/test_image_gateways.py` and
`tests/unit/wire/video/providers/test_umg_gateway_protocol.py` test them.
"""
ALL = re.compile(r"\W*, ".join(f'"{name}"' for name in TEXT_FACES))


@pytest.mark.parametrize("kind", FACE_TABLES)
def test_every_face_of_the_product_is_a_row(kind: Kind) -> None:
    assert {row.format for row in FACES if row.kind is kind} == FACE_TABLES[kind].keys()


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_every_protocol_of_the_product_is_a_row(kind: Kind) -> None:
    assert protocols_of(kind) == tuple(PROTOCOLS[kind])


def test_a_row_has_a_name_of_its_own() -> None:
    for table in (FACES, PROVIDERS):
        assert len({row.name for row in table}) == len(table)


@pytest.mark.parametrize("row", PROVIDERS, ids=lambda row: row.name)
def test_every_provider_but_a_gateway_has_a_strict_fake(row: Provider) -> None:
    assert bool(row.fake) is (row.name not in GATEWAYS)
    assert not row.fake or isinstance(strict_fake(row.name), type)


def test_every_provider_with_one_answer_has_right_answers_for_the_faults() -> None:
    assert set(PATHS.values()) == set(protocols_of(Kind.TEXT, Kind.EMBEDDING, Kind.RERANKING))


@pytest.mark.parametrize("path", sorted(ROOM.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOM)))
def test_no_module_lists_all_text_formats_itself(path: Path) -> None:
    assert not ALL.search(path.read_text(encoding="utf-8"))
