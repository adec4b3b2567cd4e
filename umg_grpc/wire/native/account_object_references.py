"""Members of a native body that may name an object in a provider's account (a file), for the check of its owner."""

from umg_grpc.wire.core.account_object_detection import OBJECT_WORDS, Members, ObjectRules

# Members with an id that pairs a call with its result.
LABELLED_PARENTS = frozenset(
    {
        *("function_call", "function_response", "tool_call", "tool_response"),
        *("executable_code", "code_execution_result"),
    }
)


def _passes(name: str, members: Members, parent: str) -> bool:
    return name == "id" and parent in LABELLED_PARENTS


OBJECT_RULES = ObjectRules(
    free=frozenset(
        {
            *("function_declarations", "args", "response", "labels", "response_schema", "response_json_schema"),
            *("metadata_filter", "filter"),
        }
    ),
    words=OBJECT_WORDS
    | {
        *("thought_signature", "code", "output", "contents", "system_instruction", "system", "stop_sequences"),
        *("allowed_function_names", "api_key_string", "access_token", "id_token"),
    },
    references=frozenset(
        {
            *("cached_content", "engine", "service_account", "api_key_secret", "api_key_secret_version"),
            *("prompt_template_name", "response_template_name"),
        }
    ),
    passes=_passes,
)
