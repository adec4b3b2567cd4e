"""Operations of the models of presets and of providers' lists: by the preset, by their ids, by the list, else text."""

from dataclasses import dataclass

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Config, parse
from umg_grpc.knowledge.operations_by_model_id import known_operations, operations_named
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS
from umg_grpc.operations import SCOPE_OPERATIONS
from umg_grpc.routing import GENERATE_VALUE, Router
from umg_grpc.routing.discovered_models import with_discovered
from umg_grpc.v1 import pb

TEXT = ("count_tokens", "generate")
IMAGES = ("edit_image", "generate_image")
VIDEO = ("create_video",)
VECTORS = ("embed",)
ALL_PROTOCOLS = "protocols: [chat, embeddings, rerank, images], base_url: 'http://host'"


def read(channel: str, **models: str) -> Config:
    """Return the config of one channel in flow style. `models`: operations that the operator states."""
    stated = "".join(f"  {name}: {{capabilities: {{operations: {words}}}}}\n" for name, words in models.items())
    text = f"channels:\n- {{name: c, {channel}}}\n" + (f"models:\n{stated}" if stated else "")
    return parse(text, "umg.yaml", {})


@dataclass(frozen=True)
class Served:
    id: str
    channel: str
    model: str
    operations: tuple[str, ...]
    listed: tuple[str, ...] | None = None
    """Operations in the provider's list; None for a model that is not there."""


OPENAI = "provider: openai, api_key: k"
SERVED = [
    Served("a text of a preset", OPENAI, "gpt-9", TEXT),
    Served("an image model of a preset", OPENAI, "gpt-image-9", IMAGES),
    Served("vectors of a preset", OPENAI, "text-embedding-3-huge", VECTORS),
    Served("speech of a preset", OPENAI, "gpt-9-mini-tts", ("speak",)),
    Served("a model that the operator names", "provider: openai, api_key: k, models: [mine]", "mine", TEXT),
    Served("speech that the operator names", "provider: openai, api_key: k, models: [whisper-1]", "whisper-1", ("transcribe",)),
    Served("vectors of a local server", "provider: ollama", "ollama/nomic-embed-text:v1.5", VECTORS),
    Served("a text of a local server", "provider: ollama", "ollama/llama9:8b", TEXT),
    Served("a video of a host of two kinds", "provider: dashscope-media, api_key: k", "wan2.9-t2v", VIDEO),
    Served("an image of a host of two kinds", "provider: dashscope-media, api_key: k", "qwen-image-9", IMAGES),
    Served("a video beside texts", "provider: ark, api_key: k", "doubao-seedance-9", VIDEO),
    Served("an edit beside texts", "provider: ark, api_key: k", "doubao-seededit-9", ("edit_image",)),
    Served("an unknown model of a provider without texts", "provider: jina, api_key: k", "jina-x", VECTORS),
    Served("vectors by the list", "provider: together, api_key: k, models: discover", "together/acme/x", VECTORS, listed=VECTORS),
    Served("a listed id that shows another", "provider: together, api_key: k, models: discover", "together/a/b-embed", VECTORS, listed=TEXT),
    Served("a listed model without a kind", "provider: together, api_key: k, models: discover", "together/acme/y", TEXT, listed=()),
    Served("a list of another server", f"{ALL_PROTOCOLS}, models: discover", "x", TEXT, listed=()),
    Served("an id that the operator's own channel names", f"{ALL_PROTOCOLS}, models: [x]", "x", ("embed", "generate", "count_tokens", "rerank", *IMAGES)),
    Served("an id that shows what the protocols lack", "protocols: [chat], base_url: 'http://host', models: [my-embed]", "my-embed", TEXT),
    Served("one of a pattern that shows it", "protocols: [chat], base_url: 'http://host', models: ['*']", "my-embed", ()),
]  # fmt: skip


@pytest.mark.parametrize("case", SERVED, ids=lambda case: case.id)
def test_a_model_has_the_operations_that_are_known_of_it(case: Served) -> None:
    config = read(case.channel)
    if case.listed is not None:
        upstream = case.model.removeprefix("together/")
        config = with_discovered(
            config, {"c": [pb.Model(id=upstream, operations=sorted(operations_named(case.listed)))]}
        )
    router = Router(config)
    (target,) = router.targets(case.model)
    assert target.operations == operations_named(case.operations)
    if GENERATE_VALUE not in target.operations:
        with pytest.raises(UmgError, match="cannot generate text") as caught:
            router.channels(case.model)
        assert caught.value.reason == pb.ERROR_REASON_UNSUPPORTED_FIELD


def test_the_operator_states_operations_above_all_other_sources() -> None:
    router = Router(read("provider: openai, api_key: k, models: [gpt-9-tts]", **{"gpt-9-tts": "[generate]"}))
    assert router.targets("gpt-9-tts")[0].operations == operations_named(TEXT)


def test_each_pattern_of_a_preset_with_a_family_of_media_has_operations_of_it() -> None:
    media = frozenset((*SCOPE_OPERATIONS["images"], *SCOPE_OPERATIONS["videos"]))
    for preset in PROVIDER_PRESETS.values():
        for model in preset.models:
            if model.family is None or len(preset.protocols) == 1:
                continue
            ids = [model.upstream.replace("*", part) for part in ("9", "-9")]
            does = next((does for each in ids if (does := preset.operations_of(each) or known_operations(each))), None)
            assert does, (preset.name, model)
            assert does <= media, (preset.name, model)
