"""Detection of the first streamed event with output. Events before it are held back, so that failover is possible."""

import re

from umg_grpc.wire.core.first_output_detection import OTHER_EVENTS, Shape, Value, output_check
from umg_grpc.wire.responses.provider_stream_events import BEGIN_EVENTS

RESPONSE_SHAPE = {"output": Value.EMPTY, "error": Value.EMPTY, OTHER_EVENTS: Value.ANY}
# Members of a starting item that are no output; a reasoning state is of use only with the reasoning itself.
ITEM_SHAPE: Shape = {
    "type": frozenset({"message", "reasoning"}),
    **dict.fromkeys(("id", "status", "role", "phase", "encrypted_content"), Value.ANY),
}
PART_SHAPE = {"type": frozenset({"output_text", "refusal", "summary_text", "reasoning_text"})}


def _event(*types: str, **members: Shape) -> Shape:
    return {"type": frozenset(types), "error": Value.EMPTY, **members, OTHER_EVENTS: Value.ANY}


has_no_output = output_check(
    re.compile(rb'\.delta"'),
    _event(*BEGIN_EVENTS, response=RESPONSE_SHAPE),
    _event("response.output_item.added", item=ITEM_SHAPE),
    _event("response.content_part.added", "response.reasoning_summary_part.added", part=PART_SHAPE),
)
