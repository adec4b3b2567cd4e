"""The names that the config reads are those of the codecs."""

from umg_grpc.wire import FORMATS, provider_protocols
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS
from umg_grpc.wire.rerank import RERANK_FORMATS
from umg_grpc.wire.video import VIDEO_PROTOCOLS


def test_the_names_are_those_of_the_codecs() -> None:
    assert [(name, codec.name) for name, codec in FORMATS.items()] == [
        (name, name) for name in provider_protocols.TEXT_PROTOCOLS
    ]
    assert (
        tuple(dict.fromkeys(row.protocol for row in EMBEDDING_FORMATS.values()))
        == provider_protocols.EMBEDDING_PROTOCOLS
    )
    assert tuple(dict.fromkeys(row.protocol for row in RERANK_FORMATS.values())) == provider_protocols.RERANK_PROTOCOLS
    assert tuple(IMAGE_PROTOCOLS) == provider_protocols.IMAGE_PROTOCOLS
    assert tuple(VIDEO_PROTOCOLS) == provider_protocols.VIDEO_PROTOCOLS
