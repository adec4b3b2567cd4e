"""Simulated provider with deterministic answers, for tests and for users without keys. Answers state that they are
simulated.

Text: `SandboxText`, whose responses depend only on the prompt. Marks in the last user turn select a fault: `[[fail]]`
(500), `[[fail:mid]]` (the stream breaks off), `[[fail:429]]`, `[[slow]]`, `[[refuse]]`, `[[block]]` (the prompt is
blocked), `[[redacted]]` (the reasoning is redacted).

Images: `SandboxImages`, which draws files of the requested size and type.

Embedding and reranking: `simulated_operations`, based on the vectors of the local model.

Videos: `SandboxVideo`, tasks of some seconds whose results are MP4 files. `[[fail]]`, `[[refuse]]` and `[[block]]` in
the prompt fail the task, `[[fail:429]]` rejects its submission, and with `[[slow]]` it never ends.
"""

from umg_sandbox.image_channel import SandboxImages
from umg_sandbox.text_channel import SandboxText
from umg_sandbox.unary_channel import simulated_operations
from umg_sandbox.video_channel import SandboxVideo

__all__ = ["SandboxImages", "SandboxText", "SandboxVideo", "simulated_operations"]
