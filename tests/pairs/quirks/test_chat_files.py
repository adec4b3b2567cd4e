"""Files in the messages of chat callers: translated for providers of all formats, and sent to chat providers in the
form that they accept.
"""

import base64
from typing import Any

import pytest

from tests.pairs.quirks.requests import decoded_request, encoded
from tests.support.error_checks import raises_error
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb

PDF = base64.b64encode(b"%PDF-1.4\n%%EOF").decode()
URL = f"data:application/pdf;base64,{PDF}"
DOCUMENT_URL = Quirks(file_form="document_url")
INLINE = {"type": "base64", "media_type": "application/pdf", "data": PDF}


def read(**file: str) -> dict[str, Any]:
    """Return the members of a chat body with a file."""
    return {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Read"}, {"type": "file", "file": file}]}]
    }


WHOLE = read(file_data=URL, filename="a.pdf")


@pytest.mark.parametrize("data", [URL, PDF], ids=["data url", "bare base64"])
def test_a_file_of_a_chat_caller_reaches_providers_of_other_formats(data: str) -> None:
    fields = read(file_data=data, filename="a.pdf")
    claude, _ = encoded("chat", "messages", NO_QUIRKS, **fields)
    assert claude["messages"][0]["content"][1] == {"type": "document", "source": INLINE, "title": "a.pdf"}
    gemini, _ = encoded("chat", "native", NO_QUIRKS, **fields)
    inline = {"mimeType": "application/pdf", "data": PDF}
    assert gemini["contents"][0]["parts"][1] == {"inlineData": inline}
    openai, _ = encoded("chat", "responses", NO_QUIRKS, **fields)
    assert openai["input"][0]["content"][1] == {"type": "input_file", "filename": "a.pdf", "file_data": URL}


def test_a_file_of_a_chat_caller_reaches_a_chat_provider_as_it_came() -> None:
    for fields in (WHOLE, read(file_id="file-1")):
        body, report = encoded("chat", "chat", NO_QUIRKS, **fields)
        assert (body["messages"], report) == (fields["messages"], "")


def test_a_stored_file_of_a_chat_caller_reaches_a_provider_of_responses() -> None:
    body, _ = encoded("chat", "responses", NO_QUIRKS, **read(file_id="file-1"))
    assert body["input"][0]["content"][1] == {"type": "input_file", "file_id": "file-1"}


def test_a_file_of_a_chat_body_is_a_document_url_where_the_provider_has_no_files() -> None:
    sent = {"type": "document_url", "document_url": URL, "document_name": "a.pdf"}
    for data in (URL, PDF):
        body, report = encoded("chat", "chat", DOCUMENT_URL, **read(file_data=data, filename="a.pdf"))
        assert (body["messages"][0]["content"][1], report) == (sent, "messages.content.file=document_url")
    translated, _ = encoded("chat", "responses", DOCUMENT_URL, **WHOLE)
    assert translated["input"][0]["content"][1]["type"] == "input_file"


def test_a_stored_file_stays_as_it_is_there() -> None:
    fields = read(file_id="file-1")
    body, report = encoded("chat", "chat", DOCUMENT_URL, **fields)
    assert (body["messages"], report) == (fields["messages"], "")


def test_a_text_file_is_text_there() -> None:
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Hi"}}
    body, _ = encoded("messages", "chat", DOCUMENT_URL, messages=[{"role": "user", "content": [document]}])
    assert body["messages"][0]["content"] == "Hi"


def test_the_type_of_a_file_without_one_is_known_by_its_name() -> None:
    text = base64.b64encode(b"a,b").decode()
    media = decoded_request("chat", **read(file_data=text, filename="a.csv")).messages[0].parts[1].media
    assert (media.mime_type, media.kind, media.filename) == ("text/csv", pb.MEDIA_KIND_DOCUMENT, "a.csv")


def test_a_file_for_a_model_without_files_is_refused() -> None:
    with raises_error(field="messages[0].parts[1]"):
        encoded("chat", "chat", Quirks(inputs=frozenset({"image"})), **WHOLE)
