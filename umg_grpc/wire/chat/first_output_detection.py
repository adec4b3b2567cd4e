"""Detection of streamed chat chunks without output: the first chunk often contains nothing but a role."""

import re

from umg_grpc.wire.core.first_output_detection import Items, Shape, Value, output_check

# Members of a chunk that are no output; some providers send usage from the first chunk on, or the results of a filter
# on the prompt.
ENVELOPE_KEYS = frozenset(
    {"id", "object", "created", "model", "system_fingerprint", "service_tier", "provider", "usage", "obfuscation"}
    | {"prompt_filter_results", "x_groq", "timings"}
)
CHOICE_SHAPE: Shape = {"index": Value.ANY, "content_filter_results": Value.ANY, "delta": {"role": Value.ANY}}

has_no_output = output_check(
    re.compile(rb'"(?:content|reasoning_content|arguments)": ?"[^"]'),
    {**dict.fromkeys(ENVELOPE_KEYS, Value.ANY), "choices": Items(CHOICE_SHAPE, required=True)},
)
