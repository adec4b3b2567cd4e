"""The protocols that the config reads are those of the codecs, with the same properties."""

from umg_grpc.operations.embedding_operation import EMBED_OPERATION
from umg_grpc.operations.generation_operation import GENERATE_OPERATION
from umg_grpc.operations.image_operation import IMAGE_GENERATION
from umg_grpc.operations.provider_protocols_by_name import has_callers, has_input_limit
from umg_grpc.operations.rerank_operation import RERANK_OPERATION
from umg_grpc.operations.video_operation import VIDEO_CREATION
from umg_grpc.wire import TEXT_UPSTREAMS
from umg_grpc.wire.embedding_formats import EMBEDDING_UPSTREAMS
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS
from umg_grpc.wire.rerank import RERANK_UPSTREAMS
from umg_grpc.wire.unary_format_interface import UnaryFormat
from umg_grpc.wire.video import VIDEO_PROTOCOLS


def test_the_names_are_those_of_the_codecs() -> None:
    assert [(name, codec.name) for name, codec in TEXT_UPSTREAMS.items()] == [
        (name, name) for name in GENERATE_OPERATION.protocols
    ]
    assert list(dict.fromkeys(row.protocol for row in EMBEDDING_UPSTREAMS.values())) == list(EMBED_OPERATION.protocols)
    assert list(dict.fromkeys(row.protocol for row in RERANK_UPSTREAMS.values())) == list(RERANK_OPERATION.protocols)
    assert list(IMAGE_PROTOCOLS) == list(IMAGE_GENERATION.protocols)
    assert list(VIDEO_PROTOCOLS) == list(VIDEO_CREATION.protocols)


def test_a_protocol_has_callers_if_its_codec_reads_their_bodies() -> None:
    for codec in [*EMBEDDING_UPSTREAMS.values(), *RERANK_UPSTREAMS.values()]:
        assert has_callers(codec.protocol) is isinstance(codec, UnaryFormat)


def test_a_protocol_has_an_input_limit_if_its_codec_has_one() -> None:
    for codec in [*EMBEDDING_UPSTREAMS.values(), *RERANK_UPSTREAMS.values()]:
        assert has_input_limit(codec.protocol) is (codec.max_items is not None)
