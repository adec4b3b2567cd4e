"""Catalogue of documented models: operations, limits and capabilities by model id, independent of the provider. It has
the models in the specifications of texts, images and videos, and the models that run on this machine. Operators'
settings have precedence. The specifications state no prompt limit for the simulated text models; the limits here allow
the 2 MB that coding agents send.
"""

from collections.abc import Mapping

from umg_grpc.v1 import pb

GENERATE_OPERATIONS = (pb.MODEL_OPERATION_GENERATE, pb.MODEL_OPERATION_COUNT_TOKENS)
MAKE_OPERATIONS, EDIT_OPERATIONS = (pb.MODEL_OPERATION_GENERATE_IMAGE,), (pb.MODEL_OPERATION_EDIT_IMAGE,)
TASK_TYPES = (
    *("RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT", "SEMANTIC_SIMILARITY", "CLASSIFICATION", "CLUSTERING"),
    *("QUESTION_ANSWERING", "FACT_VERIFICATION", "CODE_RETRIEVAL_QUERY"),
)
"""Task types of the native format (text document, ":embedContent")."""


def _text(
    model: str,
    context: int,
    output: int,
    *,
    reasoning: "pb.ReasoningControl.ValueType" = pb.REASONING_CONTROL_UNSPECIFIED,
    images: bool = False,
    plain: bool = False,
) -> pb.Model:
    capabilities = pb.ModelCapabilities(output_modalities=["text"])
    if not plain:
        capabilities = pb.ModelCapabilities(
            input_modalities=["image", "file"],
            output_modalities=["text", "image"] if images else ["text"],
            tools=True,
            parallel_tools=True,
            structured_output=True,
            search=True,
            reasoning=reasoning,
            min_cached_tokens=2048 if "mini" in model or "flash" in model else 1024,  # text document, "Limits"
        )
    return pb.Model(
        id=model,
        operations=(*GENERATE_OPERATIONS, *MAKE_OPERATIONS, *EDIT_OPERATIONS) if images else GENERATE_OPERATIONS,
        input_token_limit=context,
        output_token_limit=output,
        capabilities=capabilities,
    )


def _embedding(
    model: str,
    dimensions: int,
    *,
    context: int,
    choices: tuple[int, ...] = (),
    any_length: bool = False,
    task_types: tuple[str, ...] = (),
) -> pb.Model:
    lengths = pb.ModelEmbedding(
        default_dimensions=dimensions, dimensions=choices, any_dimensions=any_length, task_types=task_types
    )
    return pb.Model(
        id=model,
        operations=[pb.MODEL_OPERATION_EMBED],
        input_token_limit=context,
        capabilities=pb.ModelCapabilities(output_modalities=["embedding"]),
        embedding=lengths,
    )


def _rerank(model: str, *, context: int) -> pb.Model:
    return pb.Model(
        id=model,
        operations=[pb.MODEL_OPERATION_RERANK],
        input_token_limit=context,
        capabilities=pb.ModelCapabilities(output_modalities=["ranking"]),
    )


def _image(model: str, *operations: "pb.ModelOperation.ValueType") -> pb.Model:
    """Return the description of an image model. It has no prompt limit, since the specification states none."""
    inputs = ["image"] if pb.MODEL_OPERATION_EDIT_IMAGE in operations else []
    return pb.Model(
        id=model,
        operations=operations,
        capabilities=pb.ModelCapabilities(input_modalities=inputs, output_modalities=["image"]),
    )


def _video(model: str, *inputs: str, remix: bool = False) -> pb.Model:
    operations = [pb.MODEL_OPERATION_CREATE_VIDEO, *([pb.MODEL_OPERATION_REMIX_VIDEO] if remix else [])]
    capabilities = pb.ModelCapabilities(input_modalities=inputs, output_modalities=["video"])
    return pb.Model(id=model, operations=operations, capabilities=capabilities)


_BUDGET, _LEVEL, _SWITCH = pb.REASONING_CONTROL_BUDGET, pb.REASONING_CONTROL_LEVEL, pb.REASONING_CONTROL_SWITCH

MODEL_CATALOGUE: Mapping[str, pb.Model] = {
    model.id: model
    for model in (
        _text("famG-2.5-flash", 1_048_576, 65_536, reasoning=_BUDGET),
        _text("famG-2.5-pro", 2_097_152, 65_536, reasoning=_BUDGET),
        _text("famG-3-pro", 1_048_576, 65_536, reasoning=_LEVEL),
        # models that also make images (image document, "Native family G")
        _text("famG-2.5-flash-image", 65_536, 32_768, images=True),
        _text("famG-3-pro-image-preview", 65_536, 32_768, images=True),
        _text("famO-5-mini", 1_048_576, 128_000, reasoning=_LEVEL),
        _text("famO-5", 1_048_576, 128_000, reasoning=_LEVEL),
        _text("famC-sonnet-4-5", 1_000_000, 64_000, reasoning=_BUDGET),
        _text("famQ-3-max", 1_000_000, 65_536, reasoning=_SWITCH),
        _text("famR-1", 1_000_000, 65_536, reasoning=_SWITCH),
        _text("famX-4", 1_000_000, 65_536),
        _text("smollm2-135m-instruct", 4096, 4096, plain=True),
        # text document, "POST /v1/embeddings" and ":embedContent"; selectable lengths: the vendors' own pages
        _embedding("text-embedding-3-small", 1536, context=8192, any_length=True),
        _embedding("text-embedding-3-large", 3072, context=8192, any_length=True),
        _embedding("text-embedding-ada-002", 1536, context=8192),
        _embedding("famG-embedding-001", 3072, context=2048, any_length=True, task_types=TASK_TYPES),
        _embedding("text-embedding-004", 768, context=2048, any_length=True, task_types=TASK_TYPES),
        # twice the length to which clients cut texts, because their vocabulary yields fewer tokens
        _embedding("wordllama-256", 256, context=16_384, choices=(64, 128, 256)),
        _rerank("rerank-v1", context=4096),
        _rerank("wordllama-rerank", context=8192),
        # image document, "Model families and capabilities"
        _image("imgA-3-0-t2i-250415", *MAKE_OPERATIONS),
        _image("imgA-4-0-250828", *MAKE_OPERATIONS, *EDIT_OPERATIONS),
        _image("imgA-4-5-251128", *MAKE_OPERATIONS, *EDIT_OPERATIONS),
        _image("imgB-3-0-i2i-250628", *EDIT_OPERATIONS),
        _image("imgC-1", *MAKE_OPERATIONS, *EDIT_OPERATIONS),
        _image("imgC-1-mini", *MAKE_OPERATIONS, *EDIT_OPERATIONS),
        _image("imgD-plus", *MAKE_OPERATIONS),
        _image("imgD-edit-plus", *EDIT_OPERATIONS),
        _image("imgD-edit", *EDIT_OPERATIONS),
        # video document, "Models by entry"
        _video("vidA-2", "image", remix=True),
        _video("vidB-3.0-fast-generate-001", "image"),
        _video("vidB-3.0-generate-preview", "image"),
        _video("vidB-3.1-fast-generate-preview", "image"),
        _video("vidB-3.1-generate-preview", "image"),
        _video("vidC2.5-t2v-preview", "audio"),
        _video("vidC2.5-i2v-preview", "image", "audio"),
        _video("vidD-1-0-lite-t2v-250428"),
        _video("vidD-1-0-lite-i2v-250428", "image"),
        _video("vidD-1-0-pro-250528", "image"),
        _video("vidD-1-5-pro-251215", "image", "video", "audio"),
        _video("vidD-1-5-pro-251215-noAudio", "image"),
        _video("vidD-2-0-260128", "image", "video", "audio"),
        _video("vidD-2-0-fast-260128", "image", "video", "audio"),
        _video("vidD-2-5-260628", "image", "video", "audio"),
        _video("vidE-v1", "image"),
        _video("vidE-v1-6", "image"),
        _video("vidE-v2-master", "image"),
        _video("vidE-v2-6", "image"),
        _video("vidE-v2-5-turbo", "image"),
        _video("vidE-v3", "image"),
        _video("vidE-3.0", "image"),
        _video("vidE-3.0-turbo", "image"),
        _video("vidE-3.0-omni", "image", "video"),
        _video("vidF_vgfm_t2v_l20", "image"),
        _video("vidG-H3", "image", "video", "audio"),
    )
}


def describe(*ids: str) -> pb.Model | None:
    """Return the description of the first of these ids in the catalogue, or None. It is shared: do not change it."""
    return next((MODEL_CATALOGUE[model] for model in ids if model in MODEL_CATALOGUE), None)
