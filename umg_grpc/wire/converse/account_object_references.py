"""Members of Converse blocks that may name an object in a provider's account (S3), for the check of its owner."""

from umg_grpc.wire.core.account_object_detection import OBJECT_WORDS, ObjectRules

OBJECT_RULES = ObjectRules(
    free=frozenset({"input", "json", "input_schema", "schema"}),
    words=OBJECT_WORDS | {"source", "context"},
    references=frozenset({"uri"}),
)
