"""Table of the quirks of real providers' models: restrictions beyond the wire format, each row with its source.

`known` looks up the quirks of one model. Pure: no I/O and no clock.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from umg_grpc.knowledge.quirks import NO_QUIRKS, Quirks


@dataclass(frozen=True, kw_only=True)
class Row:
    """Row of the table of quirks: a fact about models of providers, and the conditions under which it applies.

    All conditions must match; an unset condition always matches.
    """

    quirks: Quirks
    source: str
    """Document or report of the fact."""
    models: str = ""
    """Pattern of the beginning of the provider's model id, after a vendor's name (`vendor/`, `vendor.`)."""
    family: str = ""
    """Family of the model; a row matches by the family that the operator sets, or by the id."""
    hosts: str = ""
    """Pattern of the domain of the channel's `base_url`; it includes all subdomains."""
    protocols: tuple[str, ...] = ()
    """Formats in which it applies."""

    def holds(self, model: str, family: str, host: str, protocol: str) -> bool:
        """Return whether all conditions of the row match: the provider's model id, its family ("" if unknown), the
        provider's host, and the wire format.
        """
        if self.protocols and protocol not in self.protocols:
            return False
        if self.hosts and self._domain.fullmatch(host) is None:
            return False
        if self.family and self.family == family:
            return True
        return not self.models or self._pattern.match(model) is not None

    @cached_property
    def _domain(self) -> re.Pattern[str]:
        return re.compile(rf"(?:.*\.)?(?:{self.hosts})")

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(rf"(?:.*[/.])?(?:{self.models})", re.IGNORECASE)


def _limit(tokens: int) -> Quirks:
    return Quirks(max_output_tokens=tokens)


TEXT_WITH_USER = ("chat", "responses")

# For each quirk the first matching row that sets it decides: hosts before models, special ids before general ones.
PROVIDER_QUIRKS = (
    # --- the end user's id
    Row(
        hosts=r"bigmodel\.cn|z\.ai|volces\.com|bytepluses\.com",
        quirks=Quirks(min_user_characters=6, max_user_characters=128),
        source="looplj/axonhub#1669 and #1131: 400, the id of the user must be between 6 and 128 characters in length",
    ),
    Row(
        hosts=r"openrouter\.ai",
        protocols=TEXT_WITH_USER,
        quirks=Quirks(max_user_characters=128),
        source="ujisati/claude-code-provider-proxy#11: accepts up to 128 characters",
    ),
    Row(
        protocols=TEXT_WITH_USER,
        quirks=Quirks(max_user_characters=64),
        source="maximhq/bifrost#1000: the vendor of both formats takes 64 characters",
    ),
    # --- search
    Row(
        models=r"gpt-[\w.-]*-search-(?:preview|api)",
        protocols=("chat",),
        quirks=Quirks(web_search=True),
        source="pydantic/pydantic-ai#2822: `web_search_options` is for the search models of the vendor alone",
    ),
    Row(
        models=r"sonar",
        protocols=("chat",),
        quirks=Quirks(web_search=True),
        source="the vendor's reference of its chat completions, `web_search_options`",
    ),
    Row(
        models=r"fam[GOCQRX]-",
        protocols=("chat",),
        quirks=Quirks(web_search=True),
        source="text document, POST /v1/chat/completions: `web_search_options`, `search_parameters`, rules 2, 5 and 6",
    ),
    Row(
        protocols=("chat",),
        quirks=Quirks(web_search=False),
        source="pydantic/pydantic-ai#2822, BerriAI/litellm#12311: 400, Unknown parameter: 'web_search_options'",
    ),
    Row(
        models=r"(?:gemini|famG)-(?:1|2)(?![0-9])",
        protocols=("native",),
        quirks=Quirks(search_with_functions="drop"),
        source="googleapis/go-genai#323: 400, Tool use with function calling is unsupported",
    ),
    Row(
        hosts=r"(?:[\w-]+-)?aiplatform\.googleapis\.com",
        protocols=("native",),
        quirks=Quirks(search_with_functions="send"),
        source="vercel/ai#14655, pydantic/pydantic-ai#6771: 400, Unknown name includeServerSideToolInvocations",
    ),
    Row(
        models=r"(?:gemini|famG)-[3-9]",
        protocols=("native",),
        quirks=Quirks(search_with_functions="declare"),
        source="cloudwego/eino-ext#761: 400, Please enable tool_config.include_server_side_tool_invocations",
    ),
    # --- reasoning of earlier turns in chat
    Row(
        hosts=r"groq\.com",
        protocols=("chat",),
        quirks=Quirks(reasoning_content=False),
        source="janhq/jan#8136, tashfeenahmed/freellmapi#1070: 400, property 'reasoning_content' is unsupported",
    ),
    Row(
        hosts=r"mistral\.ai",
        protocols=("chat",),
        quirks=Quirks(reasoning_content=False),
        source="charmbracelet/crush#1590: 422, extra_forbidden at assistant.reasoning_content",
    ),
    Row(
        models=r"deepseek|famR-",
        family="famR",
        protocols=("chat",),
        quirks=Quirks(reasoning_content=True),
        source="abhigyanpatwari/GitNexus#43: 400, Missing `reasoning_content` field; the vendor's guide to thinking",
    ),
    Row(
        models=r"kimi|moonshot",
        protocols=("chat",),
        quirks=Quirks(reasoning_content=True),
        source="bytedance/deer-flow#3043: 400, reasoning_content is missing in assistant tool call message",
    ),
    Row(
        models=r"qwen|qwq|qvq|famQ-",
        family="famQ",
        protocols=("chat",),
        quirks=Quirks(reasoning_content=True),
        source="vercel/ai#20871: the vendor asks for reasoning_content beside tool results; QwenLM/qwen-code#5637",
    ),
    Row(
        models=r"glm-",
        protocols=("chat",),
        quirks=Quirks(reasoning_content=True),
        source="the vendor's guide to its thinking modes: reasoning_content is returned with the tool results",
    ),
    Row(
        models=r"minimax",
        protocols=("chat",),
        quirks=Quirks(reasoning_content=True),
        source="charmbracelet/crush#1590: taken where mistral refuses it; OpenHands/software-agent-sdk#1152",
    ),
    Row(
        protocols=("chat",),
        quirks=Quirks(reasoning_content=False),
        source="no field of the format; agentjido/req_llm#772: refused by providers that are strict about messages",
    ),
    # --- tools with free text, in chat
    Row(
        models=r"gpt-[5-9]|famO-",
        protocols=("chat",),
        quirks=Quirks(custom_tools=True),
        source="openai SDK, ChatCompletionCustomToolParam: a type of the vendor's own models since gpt-5",
    ),
    Row(
        protocols=("chat",),
        quirks=Quirks(custom_tools=False),
        source="microsoft/foundry-local#1080, ollama/ollama#17673: other servers know tools of type function alone",
    ),
    # --- message threads
    Row(
        hosts=r"deepseek\.com|z\.ai|bigmodel\.cn|moonshot\.(?:ai|cn)|minimaxi?\.(?:io|com)|aliyuncs\.com|openrouter\.ai",
        protocols=("messages",),
        quirks=Quirks(threads=False),
        source="KarpelesLab/teamclaude#378: providers without threads answer the new messages alone, without an error",
    ),
    Row(
        models=r"deepseek|glm|kimi|minimax|qwen|famQ|famR",
        protocols=("messages",),
        quirks=Quirks(threads=False),
        source="KarpelesLab/teamclaude#378; the vendor's page on message threads names its own platforms alone",
    ),
    Row(
        models=r"(?:gemini|famG)-[3-9]",
        protocols=("chat",),
        quirks=Quirks(signatures=True),
        source="Gitlawb/openclaude#76, securo-finance/securo#884: 400, Function call is missing a thought_signature; "
        "the vendor's guide to thought signatures has the placeholder",
    ),
    # --- models that do not reason, or not by the usual options
    Row(
        models=r"(?:chatgpt-4o|gpt-4o|gpt-4\.[15]|gpt-4(?:-|$)|gpt-3\.5)",
        quirks=Quirks(reasoning=False),
        source="davidmigloz/langchain_dart#712, RageAgainstThePixel/OpenAI-DotNet#500: 400, reasoning_effort, "
        "'reasoning.effort' is not supported with this model",
    ),
    Row(
        models=r"claude-3-(?:5|opus|sonnet|haiku)",
        quirks=Quirks(reasoning=False),
        source="anthropics/claude-code#2245: 400, 'claude-3-5-sonnet-20241022' does not support thinking",
    ),
    Row(
        models=r"gemini-(?:1\.|2\.0-(?!flash-thinking)|2\.5-flash-image)",
        quirks=Quirks(reasoning=False),
        source="googleapis/js-genai#681: 400, thinking is not supported; epam/ai-dial-adapter-vertexai#407",
    ),
    Row(
        models=r"grok-(?:2|3(?!-mini)|4(?![.\d])|code-fast)",
        quirks=Quirks(reasoning=False),
        source="NousResearch/hermes-agent#23435, BerriAI/litellm#16265: 400, does not support reasoningEffort",
    ),
    Row(
        models=r"llama-?[34]",
        hosts=r"groq\.com|cerebras\.ai",
        quirks=Quirks(reasoning=False),
        source="brendanlong/lion-reader#1325, diegosouzapw/OmniRoute#3277: 400, reasoning_effort is not supported",
    ),
    # --- models that choose their amount of reasoning and their sampling themselves
    Row(
        models=r"claude-(?:opus-4[.-][78]|(?:opus|sonnet|haiku|fable|mythos)-[5-9])",
        protocols=("messages",),
        quirks=Quirks(reasoning_budget=False, sampling="never"),
        source="srtab/daiv#1429, openclaw/openclaw#101674: 400, thinking.type.enabled is not supported for this model; "
        "modelflow-ai/.github#158: temperature, top_p and top_k are refused",
    ),
    Row(
        models=r"o[134](?:-|$)|gpt-5(?:-(?!chat)|$)",
        quirks=Quirks(sampling="never"),
        source="QwenLM/qwen-code#921, cline/cline#341: 400, 'temperature' does not support 0 with this model; "
        "aandrew-me/tgpt#333: Unsupported parameter: 'top_p'",
    ),
    # --- output limits
    Row(
        models=r"claude-3-5",
        quirks=_limit(8192),
        source="zed-industries/zed#16358; the vendor's page of its models",
    ),
    Row(
        models=r"claude-3-7",
        quirks=_limit(64_000),
        source="BerriAI/litellm#8984: max_tokens: 128000 > 64000, which is the maximum for claude-3-7-sonnet-20250219",
    ),
    Row(
        models=r"claude-3-",
        quirks=_limit(4096),
        source="Aider-AI/aider#992: max_tokens: 8192 > 4096; the vendor's page of its models",
    ),
    Row(
        models=r"claude-opus-4-(?:0|1|2)",  # `2`: by its date
        quirks=_limit(32_000),
        source="the vendor's page of its models",
    ),
    Row(
        models=r"claude-(?:sonnet-4(?:-0|[.-]5|-2)|haiku-4[.-]5|opus-4[.-]5)",
        quirks=_limit(64_000),
        source="BerriAI/litellm#15715: max_tokens: 200000 > 64000, which is the maximum for claude-sonnet-4-5-20250929",
    ),
    Row(
        models=r"claude-",
        quirks=Quirks(default_output_tokens=64_000),
        source="the vendor's page of its models: newer ones take at least as much",
    ),
    Row(
        models=r"gpt-4o|chatgpt-4o",
        quirks=_limit(16_384),
        source="enoch3712/ExtractThinker#346: 400, This model supports at most 16384 completion tokens",
    ),
    Row(
        models=r"gpt-4-(?:turbo|1106|0125)|gpt-3\.5-turbo",
        quirks=_limit(4096),
        source="logancyang/obsidian-copilot#256, ChatGPTNextWeb/NextChat#3195: 400, supports at most 4096",
    ),
    Row(
        models=r"gpt-4\.1",
        quirks=_limit(32_768),
        source="the vendor's page of the model",
    ),
    Row(
        models=r"o1-mini",
        quirks=_limit(65_536),
        source="pixeltable/pixeltable#493; the vendor's page of the model",
    ),
    Row(
        models=r"o1-preview",
        quirks=_limit(32_768),
        source="pixeltable/pixeltable#493; the vendor's page of the model",
    ),
    Row(
        models=r"o[134](?:-|$)",
        quirks=_limit(100_000),
        source="pixeltable/pixeltable#493; the vendor's pages of its models",
    ),
    Row(
        models=r"gpt-5-chat",
        quirks=_limit(16_384),
        source="the vendor's page of the model",
    ),
    Row(
        models=r"gpt-5(?:-|$)",
        quirks=_limit(128_000),
        source="the vendor's page of the model",
    ),
    Row(
        models=r"gemini-(?:1\.5|2\.0)",
        quirks=_limit(8192),
        source="stackblitz-labs/bolt.diy#955: 400, the supported range is from 1 (inclusive) to 8193 (exclusive)",
    ),
    Row(
        models=r"gemini-2\.5-(?:pro|flash(?!-image))",
        quirks=_limit(65_535),
        source="BerriAI/litellm#10548: 400, the supported range is from 1 (inclusive) to 65536 (exclusive)",
    ),
    Row(
        models=r"deepseek-chat",
        hosts=r"deepseek\.com",
        quirks=_limit(8192),
        source="deepseek-ai/DeepSeek-V3#69, Gitlawb/openclaude#35: 400, the valid range of max_tokens is [1, 8192]",
    ),
    Row(
        models=r"deepseek-reasoner",
        hosts=r"deepseek\.com",
        quirks=_limit(65_536),
        source="Aider-AI/aider#4125: 400, the valid range of max_tokens is [1, 65536]",
    ),
)


def known(model: str, family: str, base_url: str, protocol: str) -> Quirks:
    """Return the quirks in the table for a provider's model, when requests are encoded as the wire format `protocol`.

    `family`: family of the model, "" if unknown; `base_url`: address of the channel, whose host identifies the
    provider. Of several rows that set the same quirk, the first decides.
    """
    host = urlsplit(base_url).hostname or ""
    found = NO_QUIRKS
    for row in PROVIDER_QUIRKS:
        if row.holds(model, family, host, protocol):
            found = found.over(row.quirks)
    return found
