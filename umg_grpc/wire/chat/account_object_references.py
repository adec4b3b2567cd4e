"""Members of a chat body that may name an object in a provider's account (a file), for the check of its owner."""

from umg_grpc.knowledge.reasoning_state_members import REASONING_CARRIERS
from umg_grpc.wire.chat.provider_reasoning_members import TEXT_MEMBERS
from umg_grpc.wire.core.account_object_detection import OBJECT_WORDS, Members, ObjectRules

# Members whose elements have an id that is only a label: a tool call, a message or a document that the caller sends in
# full, a public plugin of a gateway, and an adapter that a server of the operator has loaded.
LABELLED_PARENTS = frozenset({"", "messages", "tool_calls", "documents", "plugins", "lora"})

# Members whose elements have an id that is a label, if they have content: reasoning state that a provider returned.
STATE_MEMBERS = frozenset(row.member for row in REASONING_CARRIERS if row.place == "message" and row.merge != "replace")
CONTENT_MEMBERS = (*TEXT_MEMBERS, "signature", "data", "encrypted_content")


def _passes(name: str, members: Members, parent: str) -> bool:
    if name != "id":
        return False
    return parent in LABELLED_PARENTS or (
        parent in STATE_MEMBERS and any(members.get(content) for content in CONTENT_MEMBERS)
    )


OBJECT_RULES = ObjectRules(
    free=frozenset(
        {
            *("arguments", "schema", "function", "functions", "custom", "metadata", "annotations"),
            *("logit_bias", "trace", "chat_template_kwargs", "guided_json", "structured_outputs"),
        }
    ),
    words=OBJECT_WORDS | {"input", "reasoning", "reasoning_details"},
    references=frozenset({"cached_content", "preset", "voice_id"}),
    passes=_passes,
)
