"""Data URLs and base64 as their many writers spell them."""

import pytest

from tests.support.error_checks import raises_error
from umg_grpc.wire.core.base64_media import data_url, parse_data_url

PNG = b"\x89PNG\r\n\x1a\n\xff\xfe"


@pytest.mark.parametrize(
    ("url", "mime", "data"),
    [
        ("data:image/png;base64,iVBORw0KGgr//g==", "image/png", PNG),
        ("data:image/png;base64,iVBORw0KGgr__g", "image/png", PNG),
        ("DATA:IMAGE/PNG;BASE64,iVBORw0K\r\nGgr//g==", "image/png", PNG),
        ("data:image/jpg;base64,/9j/", "image/jpeg", b"\xff\xd8\xff"),
        ("data:image/png;name=a.png;charset=x;base64,iVBORw0KGgr//g==", "image/png", PNG),
        ("data:;base64,iVBORw0KGgr//g==", "image/png", PNG),
        ("data:text/plain,a%20b", "text/plain", b"a b"),
    ],
)
def test_a_data_url_is_decoded_in_every_spelling(url: str, mime: str, data: bytes) -> None:
    assert parse_data_url(url, "f") == (mime, data)


def test_a_data_url_is_written_in_the_standard_alphabet() -> None:
    assert data_url("image/png", PNG) == "data:image/png;base64,iVBORw0KGgr//g=="


@pytest.mark.parametrize(
    "url", ["data:image/png;base64", "data:image/png;base64,@@@@", "data:image/png;base64,a", "data:x;base64,aGk=aGk="]
)
def test_a_broken_data_url_names_its_field(url: str) -> None:
    with raises_error(metadata={"field": "messages[0].content"}):
        parse_data_url(url, "messages[0].content")
