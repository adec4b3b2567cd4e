"""Detection of the first native chunk with output. A chunk before it, which has only empty parts, is held back, so that
failover is still possible.
"""

import re

from umg_grpc.wire.core.first_output_detection import OTHERS, Items, Shape, Value, output_check

CONTENT: Shape = {"parts": Items({}), OTHERS: Value.ANY}
CANDIDATE: Shape = {"index": Value.ANY, "safetyRatings": Value.ANY, "content": CONTENT}

has_no_output = output_check(
    re.compile(rb'"text": ?"[^"]'),
    {"candidates": Items(CANDIDATE), "promptFeedback": Value.EMPTY, "error": Value.EMPTY, OTHERS: Value.ANY},
)
