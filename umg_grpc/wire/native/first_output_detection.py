"""Detection of the first native chunk with output; empty ones are held back, so that failover stays possible."""

import re

from umg_grpc.wire.core.first_output_detection import OTHERS, Items, Shape, Value, output_check

CONTENT: Shape = {"parts": Items({}), OTHERS: Value.ANY}
CANDIDATE: Shape = {"index": Value.ANY, "safetyRatings": Value.ANY, "content": CONTENT}

has_no_output = output_check(
    re.compile(rb'"text": ?"[^"]'),
    {"candidates": Items(CANDIDATE), "promptFeedback": Value.EMPTY, "error": Value.EMPTY, OTHERS: Value.ANY},
)
