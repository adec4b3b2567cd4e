"""URLs of images and files: providers fetch them from the net, never from their own machine."""

import json
from collections.abc import Callable, Mapping

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

Body = Mapping[str, object]


def chat(url: str) -> Body:
    return {"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}


def responses(part: Body) -> Body:
    return {"model": "m", "input": [{"role": "user", "content": [part]}]}


def messages(kind: str, url: str) -> Body:
    block = {"type": kind, "source": {"type": "url", "url": url}}
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [block]}]}


def native(*parts: Body) -> Body:
    return {"contents": [{"role": "user", "parts": list(parts)}]}


def result_with(url: str) -> Body:
    """Return a tool result with a file."""
    return {"functionResponse": {"name": "f", "response": {}, "parts": [{"fileData": {"fileUri": url}}]}}


PLACES: dict[str, tuple[str, Callable[[str], Body], str]] = {
    "chat": ("chat", chat, "messages[0].content[0].image_url.url"),
    "responses, an image": ("responses", lambda url: responses({"type": "input_image", "image_url": url}), "input[0].content[0].image_url"),
    "responses, a file": ("responses", lambda url: responses({"type": "input_file", "file_url": url}), "input[0].content[0].file_url"),
    "messages, an image": ("messages", lambda url: messages("image", url), "messages[0].content[0].source.url"),
    "messages, a document": ("messages", lambda url: messages("document", url), "messages[0].content[0].source.url"),
    "native": ("native", lambda url: native({"fileData": {"fileUri": url}}), "contents[0].parts[0].fileData.fileUri"),
    "native, in a result": ("native", lambda url: native(result_with(url)), "contents[0].parts[0].functionResponse.parts[0].fileData.fileUri"),
}  # fmt: skip


def decoded(place: str, url: str) -> pb.GenerateRequest:
    face, body, _ = PLACES[place]
    return TEXT_FORMATS[face].decode_request(json.dumps(body(url)).encode(), {}).canonical


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "FILE://x/y", "ftp://a/b.png", "gopher://a", "://a", "/etc/passwd", "a.png"]
)
def test_an_address_of_another_kind_is_refused_by_its_field(place: str, url: str) -> None:
    with pytest.raises(UmgError) as caught:
        decoded(place, url)
    assert (caught.value.name, caught.value.metadata) == ("INVALID_FIELD", {"field": PLACES[place][2]})
    assert "expected an http(s) address" in caught.value.message


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("url", ["https://a.test/b.png", "HTTP://a.test/b", "gs://bucket/b.png"])
def test_a_url_that_providers_fetch_is_unchanged(place: str, url: str) -> None:
    [part] = decoded(place, url).messages[0].parts
    media = part.tool_result.parts[-1].media if part.HasField("tool_result") else part.media
    assert media.uri == url


@pytest.mark.parametrize("name", ["files/abc-1", "https://generativelanguage.googleapis.com/v1beta/files/abc"])
def test_a_file_id_of_native_is_sent_as_its_uri(name: str) -> None:
    for place in ("native", "native, in a result"):
        [part] = decoded(place, name).messages[0].parts
        media = part.tool_result.parts[-1].media if part.HasField("tool_result") else part.media
        assert media.file_id == name
