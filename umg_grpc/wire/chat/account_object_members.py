"""Members of a chat body that may name an object in a provider's account (a file, a voice), for the check of
its owner.
"""

from umg_grpc.wire.core.account_object_detection import WORDS, Members, ObjectRules

# Members whose elements have an id that is only a label: a tool call, a message or a document that the caller sends in
# full, a public plugin of a gateway, and an adapter that a server of the operator has loaded.
LABELLED = frozenset({"", "messages", "tool_calls", "documents", "plugins", "lora"})


def _passes(name: str, members: Members, parent: str) -> bool:
    return name == "id" and parent in LABELLED


OBJECTS = ObjectRules(
    free=frozenset(
        {
            *("arguments", "schema", "function", "functions", "custom", "metadata", "annotations"),
            *("logit_bias", "trace", "chat_template_kwargs", "guided_json", "structured_outputs"),
        }
    ),
    words=WORDS | {"input", "reasoning", "reasoning_details"},
    references=frozenset({"cached_content", "preset", "voice_id"}),
    passes=_passes,
)
