"""Members of a messages body that may name an object in a provider's account (a file), for the check of its owner."""

from umg_grpc.wire.core.account_object_detection import OBJECT_WORDS, Members, ObjectRules


def _passes(name: str, members: Members, parent: str) -> bool:
    kind = members.get("type")
    if name == "skill_id":
        return kind == "anthropic"  # one of the provider's public skills
    labelled = parent in ("", "messages") or (isinstance(kind, str) and kind.endswith("tool_use"))
    return name == "id" and labelled


def _is_output(members: Members, from_model: bool) -> bool:
    kind = members.get("type")
    return from_model and isinstance(kind, str) and kind.endswith("_tool_result")


OBJECT_RULES = ObjectRules(
    free=frozenset(
        {
            *("input", "input_schema", "input_examples", "schema", "metadata", "citations", "caller"),
            "thread",  # the gateway looks the thread up itself, among the threads of the caller
        }
    ),
    words=OBJECT_WORDS
    | {
        *("system", "source", "context", "encrypted_index", "encrypted_stdout", "stdout", "stderr", "path", "lines"),
        *("fallback_credit_token", "instructions", "betas", "server_name", "mcp_server_name", "toolset_name"),
        *("stop_sequences", "cited_text"),
    },
    references=frozenset({"container"}),
    passes=_passes,
    is_output=_is_output,
)
