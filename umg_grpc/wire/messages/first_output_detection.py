"""Detection of the first streamed event with output. The events before it (`message_start`, and the first
`content_block_start`) are held back, so that failover is still possible.
"""

import re

from umg_grpc.wire.core.first_output_detection import OTHERS, Value, output_check

MESSAGE = {"content": Value.EMPTY, OTHERS: Value.ANY}
TEXT = {"type": frozenset({"text", "thinking"})}

has_no_output = output_check(
    re.compile(rb'_delta"'),
    {"type": frozenset({"ping"}), OTHERS: Value.ANY},
    {"type": frozenset({"message_start"}), "message": MESSAGE, OTHERS: Value.ANY},
    {"type": frozenset({"content_block_start"}), "content_block": TEXT, OTHERS: Value.ANY},
)
