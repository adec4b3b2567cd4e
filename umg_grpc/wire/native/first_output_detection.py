"""Detection of the first native chunk with output; empty ones are held back, so that failover stays possible."""

import re

from umg_grpc.wire.core.first_output_detection import OTHER_EVENTS, Items, Shape, Value, output_check

CONTENT_SHAPE: Shape = {"parts": Items({}), OTHER_EVENTS: Value.ANY}
CANDIDATE_SHAPE: Shape = {"index": Value.ANY, "safetyRatings": Value.ANY, "content": CONTENT_SHAPE}

has_no_output = output_check(
    re.compile(rb'"text": ?"[^"]'),
    {
        "candidates": Items(CANDIDATE_SHAPE),
        "promptFeedback": Value.EMPTY,
        "error": Value.EMPTY,
        OTHER_EVENTS: Value.ANY,
    },
)
