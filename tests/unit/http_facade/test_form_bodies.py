"""Forms in request bodies."""

import pytest

from http_facade.exchange.multipart_form_parser import MAX_PARTS, parse_form
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.multipart_forms import FormPart

TYPE = "multipart/form-data; boundary=b"
DISPOSITION = 'Content-Disposition: form-data; name="a"\r\n'


def form(*parts: str) -> bytes:
    return "".join(f"--b\r\n{part}\r\n" for part in parts).encode() + b"--b--\r\n"


FORMS: dict[str, tuple[bytes, list[FormPart]]] = {
    "a field": (form(f"{DISPOSITION}\r\nx"), [FormPart("a", None, b"x")]),
    "an empty field": (form(f"{DISPOSITION}\r\n"), [FormPart("a", None, b"")]),
    "two fields": (
        form(f"{DISPOSITION}\r\nx", f"{DISPOSITION}\r\ny"),
        [FormPart("a", None, b"x"), FormPart("a", None, b"y")],
    ),
    "a file": (
        form('content-disposition: form-data; name="image[]"; filename="a b.png"\r\nContent-Type: image/png\r\n\r\nx'),
        [FormPart("image[]", "a b.png", b"x", "image/png")],
    ),
    "a name without quotes": (form("Content-Disposition: form-data; name=a\r\n\r\nx"), [FormPart("a", None, b"x")]),
    "an encoded file name": (
        form("Content-Disposition: form-data; name=a; filename*=UTF-8''%e2%82%ac.png\r\n\r\nx"),
        [FormPart("a", "€.png", b"x")],
    ),
    "line ends and dashes in the data": (
        form(f"{DISPOSITION}\r\n\r\n--\r\n-b\r\n"),
        [FormPart("a", None, b"\r\n--\r\n-b\r\n")],
    ),
    "a preamble": (b"text\r\n" + form(f"{DISPOSITION}\r\nx"), [FormPart("a", None, b"x")]),
    "no parts": (b"--b--\r\n", []),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_split_into_its_parts(name: str) -> None:
    body, parts = FORMS[name]
    assert list(parse_form(body, TYPE)) == parts


def test_a_boundary_may_be_quoted() -> None:
    assert [*parse_form(form(f"{DISPOSITION}\r\nx"), 'multipart/form-data; boundary="b"')] == [
        FormPart("a", None, b"x")
    ]


BROKEN: dict[str, tuple[bytes, str]] = {
    "no boundary": (form(), "multipart/form-data"),
    "an empty boundary": (form(), 'multipart/form-data; boundary=""'),
    "another boundary": (form(), "multipart/form-data; boundary=c"),
    "an empty body": (b"", TYPE),
    "no end": (form(f"{DISPOSITION}\r\nx")[:-6], TYPE),
    "no headers": (b"--b\r\nx\r\n--b--\r\n", TYPE),
    "no name": (form("Content-Type: text/plain\r\n\r\nx"), TYPE),
    "endless headers": (form(f"x: {'y' * 10_000}\r\n{DISPOSITION}\r\nx"), TYPE),
    "too many parts": (form(*[f"{DISPOSITION}\r\nx"] * (MAX_PARTS + 1)), TYPE),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_form_is_a_malformed_body(name: str) -> None:
    with pytest.raises(UmgError) as caught:
        list(parse_form(*BROKEN[name]))
    assert caught.value.reason == pb.ERROR_REASON_MALFORMED_BODY
