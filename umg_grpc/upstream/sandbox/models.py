"""The text models that the built-in sandbox channel serves.

Not shown: how long their prompts may be. Long enough here for the 2 MB that coding agents send.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class TextModel:
    """A simulated model."""

    id: str
    family: str
    display_name: str
    context_tokens: int
    """Most tokens of a prompt."""
    max_output_tokens: int
    """Most tokens of an answer that has no limit of its own."""


TEXT_MODELS = (
    TextModel("famG-2.5-flash", "famG", "famG 2.5 Flash (simulated)", 1_048_576, 65_536),
    TextModel("famG-2.5-pro", "famG", "famG 2.5 Pro (simulated)", 2_097_152, 65_536),
    TextModel("famG-3-pro", "famG", "famG 3 Pro (simulated)", 1_048_576, 65_536),
    # the two that also make images on the native path (image document, "Native family G")
    TextModel("famG-2.5-flash-image", "famG", "famG 2.5 Flash Image (simulated)", 65_536, 32_768),
    TextModel("famG-3-pro-image-preview", "famG", "famG 3 Pro Image (simulated)", 65_536, 32_768),
    TextModel("famO-5-mini", "famO", "famO 5 Mini (simulated)", 1_048_576, 128_000),
    TextModel("famO-5", "famO", "famO 5 (simulated)", 1_048_576, 128_000),
    TextModel("famC-sonnet-4-5", "famC", "famC Sonnet 4.5 (simulated)", 1_000_000, 64_000),
    TextModel("famQ-3-max", "famQ", "famQ 3 Max (simulated)", 1_000_000, 65_536),
    TextModel("famR-1", "famR", "famR 1 (simulated)", 1_000_000, 65_536),
    TextModel("famX-4", "famX", "famX 4 (simulated)", 1_000_000, 65_536),
)

_BY_ID = {model.id: model for model in TEXT_MODELS}


def text_model(model: str) -> TextModel:
    """What the sandbox takes a model for: any id that a config gives it has a size."""
    return _BY_ID.get(model) or TextModel(model, "", f"{model} (simulated)", 1_000_000, 65_536)
