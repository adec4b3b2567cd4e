"""Presets of providers: `provider: NAME` in a channel of the config fills in the provider's address, protocols and
models.

Restrictions of the providers' models are in `umg_grpc.provider_quirks`, found by the host of `base_url`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from umg_grpc.config.values import Auth, BearerAuth, ChannelModel, HeaderAuth, JwtAuth

SERVICE_ACCOUNT_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
"""Environment variable with the path of a service account's key, as the vendor's own clients read it."""


@dataclass(frozen=True, kw_only=True)
class Provider:
    """Preset of one provider: address, protocols, authentication, environment variables of its key, and models."""

    title: str
    protocols: tuple[str, ...]
    base_url: str
    """URL in front of the paths of the protocols. A part in `<>` differs for each account."""
    keys: tuple[str, ...] = ()
    """Environment variables of the key, which the vendor's own clients read; the first one that is set is used."""
    needs_key: bool = True
    auth: Auth | None = None
    """Way of sending the key; None is that of the protocol."""
    uses_service_account: bool = False
    """Whether calls are authenticated by a service account, whose file `SERVICE_ACCOUNT_FILE` names."""
    models: tuple[ChannelModel, ...]
    max_inputs: int | None = None
    """Most texts of one embedding request, if lower than the limit of the protocol."""
    docs: str
    """Documentation of the provider's API, which is the source of this preset."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Environment variables that may contain the credentials; the first one that is set is used."""
        return (SERVICE_ACCOUNT_FILE,) if self.uses_service_account else self.keys

    @property
    def is_complete(self) -> bool:
        """Whether `base_url` is the same for all accounts; otherwise the operator must fill in the parts in `<>`."""
        return "<" not in self.base_url


def _models(*ids: str, family: str | None = None) -> tuple[ChannelModel, ...]:
    return tuple(ChannelModel(name, name, family) for name in ids)


def _below(prefix: str, upstream: str = "*") -> tuple[ChannelModel, ...]:
    """Return the model pattern `prefix/*` for a provider with models of many vendors.

    `upstream`: pattern of the provider's model id, whose `*` is the part of the public id after the prefix.
    """
    return (ChannelModel(f"{prefix}/*", upstream, None),)


_TABLE: Mapping[str, Provider] = {
    "openai": Provider(
        title="OpenAI",
        protocols=("responses", "chat", "embeddings", "images", "vidA"),
        base_url="https://api.openai.com/v1",
        keys=("OPENAI_API_KEY",),
        models=(
            *_models("gpt-*", "chatgpt-*", "o1*", "o3*", "o4*", "text-embedding-*"),
            *_models("gpt-image-*", family="imgC"),
            *_models("sora-*", family="vidA"),
        ),
        docs="https://platform.openai.com/docs/api-reference",
    ),
    "anthropic": Provider(
        title="Anthropic",
        protocols=("messages",),
        base_url="https://api.anthropic.com/v1",
        keys=("ANTHROPIC_API_KEY",),
        models=_models("claude-*"),
        docs="https://docs.anthropic.com/en/api/messages",
    ),
    "gemini": Provider(
        title="Google Gemini API",
        protocols=("native", "native_embeddings", "native_images", "vidB"),
        base_url="https://generativelanguage.googleapis.com/v1beta",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        models=(*_models("gemini-*", "gemma-*"), *_models("veo-*", family="vidB")),
        docs="https://ai.google.dev/api",
    ),
    "vertex": Provider(
        title="Google Vertex AI",
        protocols=("native", "native_images", "vidB"),
        base_url="https://<region>-aiplatform.googleapis.com/v1/projects/<project>/locations/<region>/publishers/google",
        needs_key=False,
        uses_service_account=True,
        models=(*_models("gemini-*"), *_models("veo-*", family="vidB")),
        docs="https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference",
    ),
    "azure": Provider(
        title="Azure OpenAI",
        protocols=("responses", "chat", "embeddings", "images"),
        base_url="https://<resource>.openai.azure.com/openai/v1",
        keys=("AZURE_OPENAI_API_KEY",),
        auth=HeaderAuth("api-key"),
        models=_below("azure"),
        docs="https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle",
    ),
    "bedrock": Provider(
        title="Amazon Bedrock",
        protocols=("chat",),
        base_url="https://bedrock-runtime.<region>.amazonaws.com/openai/v1",
        keys=("AWS_BEARER_TOKEN_BEDROCK",),
        models=_below("bedrock"),
        docs="https://docs.aws.amazon.com/bedrock/latest/userguide/inference-chat-completions.html",
    ),
    "bedrock-anthropic": Provider(
        title="Amazon Bedrock, messages",
        protocols=("messages",),
        base_url="https://bedrock-runtime.<region>.amazonaws.com/anthropic/v1",
        keys=("AWS_BEARER_TOKEN_BEDROCK",),
        auth=BearerAuth(),
        models=tuple(
            ChannelModel(f"bedrock/{name}", name, None)
            for name in ("anthropic.*", "us.anthropic.*", "eu.anthropic.*", "apac.anthropic.*", "global.anthropic.*")
        ),
        docs="https://docs.aws.amazon.com/bedrock/latest/userguide/inference-messages-api.html",
    ),
    "openrouter": Provider(
        title="OpenRouter",
        protocols=("chat", "embeddings"),
        base_url="https://openrouter.ai/api/v1",
        keys=("OPENROUTER_API_KEY",),
        models=_below("openrouter"),
        docs="https://openrouter.ai/docs/api-reference/overview",
    ),
    "groq": Provider(
        title="Groq",
        protocols=("chat",),
        base_url="https://api.groq.com/openai/v1",
        keys=("GROQ_API_KEY",),
        models=_below("groq"),
        docs="https://console.groq.com/docs/api-reference",
    ),
    "cerebras": Provider(
        title="Cerebras",
        protocols=("chat",),
        base_url="https://api.cerebras.ai/v1",
        keys=("CEREBRAS_API_KEY",),
        models=_below("cerebras"),
        docs="https://inference-docs.cerebras.ai/api-reference/chat-completions",
    ),
    "together": Provider(
        title="Together AI",
        protocols=("chat", "embeddings", "rerank"),
        base_url="https://api.together.xyz/v1",
        keys=("TOGETHER_API_KEY",),
        models=_below("together"),
        docs="https://docs.together.ai/reference/chat-completions-1",
    ),
    "fireworks": Provider(
        title="Fireworks AI",
        protocols=("chat", "embeddings"),
        base_url="https://api.fireworks.ai/inference/v1",
        keys=("FIREWORKS_API_KEY",),
        models=_below("fireworks", "accounts/fireworks/models/*"),
        docs="https://docs.fireworks.ai/api-reference/post-chatcompletions",
    ),
    "mistral": Provider(
        title="Mistral AI",
        protocols=("chat", "embeddings"),
        base_url="https://api.mistral.ai/v1",
        keys=("MISTRAL_API_KEY",),
        models=_models("mistral-*", "ministral-*", "magistral-*", "codestral-*", "devstral-*", "pixtral-*"),
        docs="https://docs.mistral.ai/api",
    ),
    "deepseek": Provider(
        title="DeepSeek",
        protocols=("chat",),
        base_url="https://api.deepseek.com/v1",
        keys=("DEEPSEEK_API_KEY",),
        models=_models("deepseek-*"),
        docs="https://api-docs.deepseek.com",
    ),
    "xai": Provider(
        title="xAI",
        protocols=("chat", "responses"),
        base_url="https://api.x.ai/v1",
        keys=("XAI_API_KEY",),
        models=_models("grok-*"),
        docs="https://docs.x.ai/docs/api-reference",
    ),
    "moonshot": Provider(
        title="Moonshot AI",
        protocols=("chat",),
        base_url="https://api.moonshot.ai/v1",
        keys=("MOONSHOT_API_KEY",),
        models=_models("kimi-*", "moonshot-*"),
        docs="https://platform.moonshot.ai/docs/api/chat",
    ),
    "zai": Provider(
        title="Z.ai",
        protocols=("chat",),
        base_url="https://api.z.ai/api/paas/v4",
        keys=("ZAI_API_KEY",),
        models=_models("glm-*"),
        docs="https://docs.z.ai/api-reference/llm/chat-completion",
    ),
    "cohere": Provider(
        title="Cohere, texts and embeddings",
        protocols=("chat", "embeddings"),
        base_url="https://api.cohere.ai/compatibility/v1",
        keys=("CO_API_KEY", "COHERE_API_KEY"),
        models=_models("command-*", "c4ai-*", "embed-*"),
        max_inputs=96,
        docs="https://docs.cohere.com/docs/compatibility-api",
    ),
    "cohere-rerank": Provider(
        title="Cohere, ranking",
        protocols=("rerank",),
        base_url="https://api.cohere.com/v2",
        keys=("CO_API_KEY", "COHERE_API_KEY"),
        models=_models("rerank-*"),
        docs="https://docs.cohere.com/reference/rerank",
    ),
    "jina": Provider(
        title="Jina AI",
        protocols=("embeddings", "rerank"),
        base_url="https://api.jina.ai/v1",
        keys=("JINA_API_KEY",),
        models=_models("jina-*"),
        docs="https://api.jina.ai/docs",
    ),
    "voyage": Provider(
        title="Voyage AI",
        protocols=("embeddings",),
        base_url="https://api.voyageai.com/v1",
        keys=("VOYAGE_API_KEY",),
        models=_models("voyage-*"),
        max_inputs=1000,
        docs="https://docs.voyageai.com/reference/embeddings-api",
    ),
    "ark": Provider(
        title="Volcengine Ark",
        protocols=("chat", "ark_images", "vidD"),
        base_url="https://ark.cn-beijing.volces.com/api/v3",
        keys=("ARK_API_KEY",),
        models=(
            *_models("doubao-*"),
            *_models("doubao-seedream-*", family="imgA"),
            *_models("doubao-seededit-*", family="imgB"),
            *_models("doubao-seedance-*", family="vidD"),
        ),
        docs="https://www.volcengine.com/docs/82379",
    ),
    "dashscope": Provider(
        title="Alibaba Cloud Model Studio, texts",
        protocols=("chat",),
        base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
        keys=("DASHSCOPE_API_KEY",),
        models=_models("qwen*", "qwq-*", "qvq-*"),
        docs="https://www.alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope",
    ),
    "dashscope-media": Provider(
        title="Alibaba Cloud Model Studio, images and videos",
        protocols=("dashscope_images", "vidC"),
        base_url="https://dashscope.aliyuncs.com",
        keys=("DASHSCOPE_API_KEY",),
        models=(*_models("qwen-image*", family="imgD"), *_models("wan2*", family="vidC")),
        docs="https://www.alibabacloud.com/help/en/model-studio/qwen-image-api",
    ),
    "kling": Provider(
        title="Kling AI",
        protocols=("vidE",),
        base_url="https://api-singapore.klingai.com",
        keys=("KLING_API_KEY",),
        auth=JwtAuth(),
        models=_models("kling-*", family="vidE"),
        docs="https://app.klingai.com/global/dev/document-api",
    ),
    "minimax": Provider(
        title="MiniMax, texts",
        protocols=("chat",),
        base_url="https://api.minimax.io/v1",
        keys=("MINIMAX_API_KEY",),
        models=_models("MiniMax-M*"),
        docs="https://platform.minimax.io/docs/api-reference/text-openai-api",
    ),
    "minimax-video": Provider(
        title="MiniMax, videos",
        protocols=("vidG",),
        base_url="https://api.minimax.io",
        keys=("MINIMAX_API_KEY",),
        models=_models("MiniMax-H*", "T2V-*", "I2V-*", "S2V-*", family="vidG"),
        docs="https://platform.minimax.io/docs/api-reference/video-generation-intro",
    ),
    "ollama": Provider(
        title="Ollama on this machine",
        protocols=("chat", "embeddings"),
        base_url="http://localhost:11434/v1",
        needs_key=False,
        models=_below("ollama"),
        docs="https://docs.ollama.com/api/openai-compatibility",
    ),
    "vllm": Provider(
        title="vLLM",
        protocols=("chat", "responses", "embeddings", "rerank"),
        base_url="http://localhost:8000/v1",
        keys=("VLLM_API_KEY",),
        needs_key=False,
        models=_below("vllm"),
        docs="https://docs.vllm.ai/en/stable/serving/openai_compatible_server.html",
    ),
    "llama.cpp": Provider(
        title="llama.cpp server",
        protocols=("chat", "embeddings", "rerank"),
        base_url="http://localhost:8081/v1",  # its own default is 8080, which is the port of the gateway
        keys=("LLAMA_API_KEY",),
        needs_key=False,
        models=_below("llama.cpp"),
        docs="https://github.com/ggml-org/llama.cpp/tree/master/tools/server",
    ),
    "lmstudio": Provider(
        title="LM Studio on this machine",
        protocols=("chat", "responses", "embeddings"),
        base_url="http://localhost:1234/v1",
        needs_key=False,
        models=_below("lmstudio"),
        docs="https://lmstudio.ai/docs/developer/openai-compat",
    ),
}

PROVIDERS: Mapping[str, Provider] = MappingProxyType(_TABLE)
"""Preset by its name, which is the value of `provider`."""
