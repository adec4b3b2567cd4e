"""Table of the vendors' dialects in the requests of operations with one response."""

import json

from umg_grpc.knowledge.vendor_member_dialects import MEMBER_DIALECTS, dialect_of, dialects_at
from umg_grpc.v1 import pb
from umg_grpc.wire.speech import SPEECH_FORMAT
from umg_grpc.wire.vendor_dialect_adjustment import fit_members


def test_every_row_has_a_source_and_changes_something() -> None:
    for row in MEMBER_DIALECTS:
        assert row.source
        assert row.as_of
        assert row.renames or row.leaves_out or row.only_dimensions or row.task or row.path or row.adds


def test_a_special_row_precedes_the_general_one_of_its_vendor() -> None:
    rows = dialects_at("https://api.mistral.ai/v1")
    special = dialect_of(rows, "mistral-embed", "embeddings")
    general = dialect_of(rows, "codestral-embed-2505", "embeddings")
    assert special is not None
    assert special.only_dimensions == 1024
    assert general is not None
    assert general.renames == {"dimensions": "output_dimension"}
    assert dialect_of(rows, "mistral-embed", "native_embeddings") is None
    assert dialects_at("https://api.openai.com/v1") == dialects_at("http://127.0.0.1:9") == ()


def test_a_default_that_differs_is_sent_unless_the_caller_selects_a_format() -> None:
    dialect = dialect_of(dialects_at("https://api.deepinfra.com/v1/openai"), "hexgrad/Kokoro-82M", "speech")
    assert dialect is not None
    for written, sent in (("", "mp3"), ("flac", "flac")):
        request = pb.SpeakRequest(input="Hi", audio_format=written)
        body = fit_members(SPEECH_FORMAT.encode_request(request, "m"), request, dialect).body
        assert json.loads(body)["response_format"] == sent
