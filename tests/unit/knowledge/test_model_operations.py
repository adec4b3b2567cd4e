"""Operations of models by their ids: those of the public cost map, and of models that are newer than it."""

import re
from dataclasses import dataclass

import pytest

from umg_grpc.config.importers.litellm.litellm_facts import SourceModels
from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.operations_by_model_id import OperationsRow, known_operations, operations_named

MODES: dict[str, set[str]] = {
    "chat": {"generate"},
    "responses": {"generate"},
    "embedding": {"embed"},
    "rerank": {"rerank"},
    "image_generation": {"generate_image"},
    "image_edit": {"edit_image"},
    "video_generation": {"create_video"},
    "moderation": {"moderate"},
    "audio_speech": {"speak"},
    "audio_transcription": {"transcribe"},
    **{mode: set() for mode in ("realtime", "ocr")},
}
"""Mode in the cost map -> operations that its models have at least; none for a mode that is not served."""

UNSERVED = {"realtime", "complete_text", "read_document", "make_music"}
"""Operations of rows that are not served: each row has them alone."""
OTHER_IDS = {"assemblyai", "aws_polly", "deepgram", "reducto", "soniox", "stability"}
"""Providers of the cost map whose ids are those of engines and endpoints, for example `fast`, and not of models."""
UNNAMED = {
    *("ada", "gemini-flash-experimental", "virtual-try-on-001", "gemini_omni_flash"),
    "deepseek-ai/deepseek-ocr-maas",
    *("doc-intelligence/prebuilt-document", "doc-intelligence/prebuilt-layout", "doc-intelligence/prebuilt-read"),
    *("fal-ai/trellis", "fal-ai/trellis-2", "luma/agent/ray/v3.2/reframe", "minimax/h3-max/recast"),
}
"""Models whose ids do not show their operations."""
MISNAMED = {
    *("gemini-2.5-pro-preview-tts", "openai/gpt-image-2/edit", "chirp"),
    *("openai/gpt-image-2.5/flare/edit", "openai/gpt-image-2.5/sunburst/edit"),
}
"""Models whose mode in the cost map is wrong: speech as chat and the reverse, edits as generation."""


OTHERS = re.compile(r"realtime|-live|sonic|lyria")
"""Part of the ids of models of sessions and of music, whose mode is that of files and of speech."""


@dataclass(frozen=True)
class Known:
    model: str
    operations: tuple[str, ...] | None

    @property
    def id(self) -> str:
        return self.model


KNOWN = [
    Known("gpt-9", None),
    Known("gpt-audio-2", None),
    Known("deepseek-ocr", None),
    Known("qwen-vl-ocr-2026-01-01", None),
    Known("llama-3.2-90b-vision-instruct", None),
    Known("text-embedding-4-small", ("embed",)),
    Known("nomic-embed-text:latest", ("embed",)),
    Known("BAAI/bge-m3", ("embed",)),
    Known("BAAI/bge-reranker-v2-m3", ("rerank",)),
    Known("Qwen/Qwen4-Reranker-8B", ("rerank",)),
    Known("gpt-image-3", ("edit_image", "generate_image")),
    Known("gpt-4o-mini-transcribe-2027-01-01", ("transcribe",)),
    Known("hexgrad/Kokoro-82M", ("speak",)),
    Known("FunAudioLLM/CosyVoice2-0.5B", ("speak",)),
    Known("cartesia/sonic-3", ("speak",)),
    Known("amazon.nova-sonic-v3:0", ()),
    Known("FunAudioLLM/SenseVoiceSmall", ("transcribe",)),
    Known("nvidia/parakeet-tdt-0.6b-v3", ("transcribe",)),
    Known("gemini-9-flash-tts-preview", ("count_tokens", "generate", "speak")),
    Known("voxtral-mini-latest", ("generate", "transcribe")),
    Known("voxtral-mini-2602", ("transcribe",)),
    Known("gpt-realtime-3", ()),
    Known("gemini-4-flash-image", ("count_tokens", "edit_image", "generate", "generate_image")),
    Known("gemini-embedding-3", ("embed",)),
    Known("wan4.0-t2v", ("create_video",)),
    Known("wan2.2-kf2v-flash", ("create_video",)),
    Known("doubao-seedance-3-0-270101", ("create_video",)),
    Known("doubao-seedream-6-0-270101", ("edit_image", "generate_image")),
    Known("doubao-seededit-3-0-i2i-250628", ("edit_image",)),
    Known("kling-v4", ("create_video",)),
    Known("MiniMax-M4", None),
    Known("MiniMax-H4", ("create_video",)),
    Known("veo-4.0-generate-001", ("create_video",)),
    Known("sora-3", ("create_video", "remix_video")),
    Known("imgB-3-0-i2i-250628", ("edit_image",)),
]


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: case.id)
def test_a_newer_model_has_the_operations_that_its_id_shows(case: Known) -> None:
    expected = None if case.operations is None else operations_named(case.operations)
    assert known_operations(case.model) == expected


def test_each_row_has_names_of_operations_and_a_source() -> None:
    for row in read_rows("model_operations", OperationsRow):
        assert row.source
        assert row.as_of
        assert len(row.values) == (0 if row.operations[0] in UNSERVED else len(row.operations))


def test_models_of_the_public_cost_map_have_the_operations_of_their_modes() -> None:
    wrong = []
    for row in read_rows("litellm_models", SourceModels):
        expected = MODES.get(row.mode)
        if expected is None or row.provider in OTHER_IDS:
            continue
        for model in {*row.models, *row.prefixed} - UNNAMED - MISNAMED:
            if OTHERS.search(model):
                continue
            known = known_operations(model)
            does = operations_named(["generate"]) if known is None else known
            if not (operations_named(expected) <= does and (expected or not does)):
                wrong.append((row.provider, row.mode, model, known))
    assert wrong == []
