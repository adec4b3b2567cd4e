"""The names and facts that the config reads are those of the codecs."""

from umg_grpc.config.channels import key_header
from umg_grpc.wire import EMBEDDING_FORMATS, FORMATS, RERANK_FORMATS, protocols
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS
from umg_grpc.wire.video import VIDEO_PROTOCOLS


def test_the_names_are_those_of_the_codecs() -> None:
    assert tuple(FORMATS) == protocols.TEXT_PROTOCOLS
    assert tuple(dict.fromkeys(row.protocol for row in EMBEDDING_FORMATS.values())) == protocols.EMBEDDING_PROTOCOLS
    assert tuple(dict.fromkeys(row.protocol for row in RERANK_FORMATS.values())) == protocols.RERANK_PROTOCOLS
    assert tuple(IMAGE_PROTOCOLS) == protocols.IMAGE_PROTOCOLS
    assert tuple(VIDEO_PROTOCOLS) == protocols.VIDEO_PROTOCOLS


def test_the_headers_of_keys_are_those_of_the_codecs() -> None:
    rows = [*FORMATS.items(), *IMAGE_PROTOCOLS.items(), *VIDEO_PROTOCOLS.items()]
    rows += [(row.protocol, row) for row in (*EMBEDDING_FORMATS.values(), *RERANK_FORMATS.values())]
    assert {name: key_header(name) for name, _ in rows} == {name: row.key_header for name, row in rows}


def test_the_formats_with_cache_marks_are_those_of_the_codecs() -> None:
    assert tuple(name for name, row in FORMATS.items() if row.has_cache_marks) == protocols.WITH_CACHE_MARKS
