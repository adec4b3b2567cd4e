"""Conversion of canonical field paths to paths in the two native embedding bodies, for errors and reports."""

from umg_grpc.wire.core.caller_field_paths import wire_paths

_ITEM = r"^inputs\[(\d+)\]"

wire_path_of_single = wire_paths(
    [
        (_ITEM + r"\.title", "title"),
        (rf"(?:{_ITEM}\.|^)task_type", "taskType"),
        (rf"(?:{_ITEM}\.|^)dimensions", "outputDimensionality"),
        (_ITEM + r"\.(?:text|tokens)\b.*", "content.parts"),
        (r"^inputs.*", "content"),
    ]
)
# Options that all items share are repeated in each of them.
wire_path_of_batch = wire_paths(
    [
        (_ITEM + r"\.title", r"requests[\1].title"),
        (_ITEM + r"\.task_type", r"requests[\1].taskType"),
        (r"^task_type", "requests[0].taskType"),
        (_ITEM + r"\.dimensions", r"requests[\1].outputDimensionality"),
        (r"^dimensions", "requests[0].outputDimensionality"),
        (_ITEM + r"\.(?:text|tokens)\b.*", r"requests[\1].content.parts"),
        (_ITEM + r".*", r"requests[\1].content"),
        (r"^inputs", "requests"),
    ]
)
