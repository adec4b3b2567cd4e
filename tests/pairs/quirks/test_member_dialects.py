"""Table of the vendors' dialects in embeddings and rerank requests."""

from umg_grpc.knowledge.member_dialects import DIALECTS, dialect_of, dialects_at


def test_every_row_has_a_source_and_changes_something() -> None:
    for row in DIALECTS:
        assert row.source
        assert row.as_of
        assert row.renames or row.leaves_out or row.only_dimensions or row.task or row.path


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
