"""Detection of the first streamed event with output. Earlier ones are held back, so that failover stays possible."""

import re

from umg_grpc.wire.core.first_output_detection import OTHER_EVENTS, Value, output_check

MESSAGE_SHAPE = {"content": Value.EMPTY, OTHER_EVENTS: Value.ANY}
TEXT_SHAPE = {"type": frozenset({"text", "thinking"})}

has_no_output = output_check(
    re.compile(rb'_delta"'),
    {"type": frozenset({"ping"}), OTHER_EVENTS: Value.ANY},
    {"type": frozenset({"message_start"}), "message": MESSAGE_SHAPE, OTHER_EVENTS: Value.ANY},
    {"type": frozenset({"content_block_start"}), "content_block": TEXT_SHAPE, OTHER_EVENTS: Value.ANY},
)
