"""Rules of vendors' prompt caches, and prices of some of their models: facts of the vendors, as rows with source and
date.
"""

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto

MINUTE, HOUR = 60.0, 3600.0
OPENAI = "https://developers.openai.com/api/docs/guides/prompt-caching"
OPENAI_TYPES = f"{OPENAI}; openai 3.57.0, types/responses/response_create_params.py"
ANTHROPIC = "https://platform.claude.com/docs/en/build-with-claude/prompt-caching"
OPENROUTER = "https://openrouter.ai/docs/guides/best-practices/prompt-caching"
GEMINI = "https://ai.google.dev/gemini-api/docs/caching"
DEEPSEEK = "https://api-docs.deepseek.com/guides/kv_cache"
VLLM = "https://docs.vllm.ai/en/latest/design/prefix_caching.html"


class Matching(Enum):
    """Way in which a cache finds the beginning of a prompt."""

    STEPS = auto()
    """Automatic: the longest beginning in common with an earlier prompt, in steps of some tokens."""
    MARKS = auto()
    """At the marks of a request, and at some blocks before each."""
    BREAKPOINTS = auto()
    """At automatic and marked breakpoints, and at those of earlier requests."""


@dataclass(frozen=True)
class CacheRules:
    """Rules of a vendor's prompt cache. A time without a source is the shortest that the vendor states."""

    vendor: str
    matching: Matching
    source: str
    as_of: str
    step: int = 1
    """Tokens of a step of the part that is read; 1 where the vendor states none."""
    lifetime: float = float("inf")
    """Seconds for which an unused entry is kept."""
    long_lifetime: float = 0.0
    """Lifetime that a request may select; 0 for none."""
    max_marks: int = 0
    lookback: int = 0
    """Ends of blocks that are compared, backwards from a mark or from the end."""
    settings: tuple[str, ...] = ()
    """Members of a request whose change makes another prompt of the same text."""
    servers: int = 1
    """Servers of an account, each with a cache of its own. A request goes to one by its first tokens and its key."""
    routed_tokens: int = 0
    calls_a_minute: int = 0
    """Calls with the same first tokens and key that one server takes; further ones go to the next. 0: any number."""
    computes_last: bool = False
    """Whether at least one token is computed in each call, also of a prompt that is cached to its end."""


RULES = (
    CacheRules(
        "openai",
        Matching.STEPS,
        OPENAI,
        "2026-11-29",
        step=128,
        lifetime=5 * MINUTE,
        long_lifetime=24 * HOUR,
        settings=("reasoning", "reasoning_effort", "verbosity", "text", "response_format", "service_tier"),
        servers=8,
        routed_tokens=256,
        calls_a_minute=15,
    ),
    CacheRules(
        "openai breakpoints",
        Matching.BREAKPOINTS,
        OPENAI_TYPES,
        "2026-11-29",
        lifetime=30 * MINUTE,
        long_lifetime=12 * HOUR,
        max_marks=4,
        lookback=80,
        settings=("reasoning", "reasoning_effort", "verbosity", "text", "response_format", "service_tier"),
        servers=8,
        routed_tokens=256,
        calls_a_minute=15,
    ),
    CacheRules(
        "anthropic",
        Matching.MARKS,
        ANTHROPIC,
        "2026-11-29",
        lifetime=5 * MINUTE,
        long_lifetime=HOUR,
        max_marks=4,
        lookback=20,
        settings=("tool_choice", "thinking"),
    ),
    CacheRules(
        "relay of marks",
        Matching.MARKS,
        OPENROUTER,
        "2026-11-29",
        lifetime=5 * MINUTE,
        long_lifetime=HOUR,
        max_marks=4,
        lookback=20,
        settings=("tool_choice", "reasoning"),
    ),
    CacheRules("gemini", Matching.STEPS, GEMINI, "2026-11-29", lifetime=5 * MINUTE, long_lifetime=HOUR),
    CacheRules("deepseek", Matching.STEPS, DEEPSEEK, "2026-11-29", step=64, lifetime=HOUR),
    CacheRules("vllm", Matching.STEPS, VLLM, "2026-11-29", step=16, computes_last=True),
)
RULES_OF = {rules.vendor: rules for rules in RULES}


def _micros(dollars: str) -> int:
    return int(Decimal(dollars).scaleb(6))


@dataclass(frozen=True)
class ModelPrice:
    """Smallest cached prompt of a model in tokens, and the dollars of a million of its tokens."""

    model: str
    vendor: str
    minimum: int
    input: str
    output: str
    read: str
    source: str
    as_of: str
    write: str = ""
    """Of a written token; that of the input where the vendor has no other."""
    long_write: str = ""
    storage: str = ""
    """Of a token that is stored for an hour (`cachedContents`), beside that of the input once."""

    def storage_cost(self, tokens: int, seconds: float) -> int:
        """Return the cost of stored tokens in millionths of a micro-dollar, rounded up."""
        return tokens * _micros(self.input) - int(-tokens * _micros(self.storage) * Decimal(seconds) // 3600)

    def cost(self, plain: int, read: int, written: int, written_long: int, output: int) -> int:
        """Return the cost of a call in millionths of a micro-dollar, without rounding."""
        write = self.write or self.input
        return (
            plain * _micros(self.input)
            + read * _micros(self.read)
            + written * _micros(write)
            + written_long * _micros(self.long_write or write)
            + output * _micros(self.output)
        )


OPENAI_PRICES, CLAUDE_PRICES = "https://developers.openai.com/api/docs/pricing", "https://claude.com/pricing"
GEMINI_PRICES, DEEPSEEK_PRICES = (
    "https://ai.google.dev/gemini-api/docs/pricing",
    "https://api-docs.deepseek.com/quick_start/pricing",
)
MODELS = (
    ModelPrice("gpt-5.5", "openai", 1024, "5", "30", "0.5", OPENAI_PRICES, "2026-11-28"),
    ModelPrice("gpt-4.1", "openai", 1024, "2", "8", "0.5", OPENAI_PRICES, "2026-11-28"),
    ModelPrice(
        "gpt-5.6-sol", "openai breakpoints", 1024, "4", "20", "0.4", OPENAI_PRICES, "2026-11-28", "5", long_write="10"
    ),
    ModelPrice("claude-sonnet-5", "anthropic", 1024, "2", "10", "0.2", CLAUDE_PRICES, "2026-11-28", "2.5", "4"),
    ModelPrice("claude-opus-5", "anthropic", 512, "5", "25", "0.5", CLAUDE_PRICES, "2026-11-28", "6.25", "10"),
    ModelPrice("claude-opus-4-7", "anthropic", 2048, "5", "25", "0.5", CLAUDE_PRICES, "2026-11-28", "6.25", "10"),
    ModelPrice("claude-haiku-4-5", "anthropic", 4096, "1", "5", "0.1", CLAUDE_PRICES, "2026-11-28", "1.25", "2"),
    ModelPrice(
        "anthropic/claude-sonnet-5", "relay of marks", 1024, "2", "10", "0.2", OPENROUTER, "2026-11-29", "2.5", "4"
    ),
    ModelPrice("gemini-3.6-flash", "gemini", 1024, "0.75", "3.75", "0.075", GEMINI_PRICES, "2026-11-28", storage="0.5"),
    ModelPrice("gemini-3.1-pro-preview", "gemini", 4096, "2", "12", "0.2", GEMINI_PRICES, "2026-11-28", storage="4.5"),
    ModelPrice("deepseek-v4-flash", "deepseek", 64, "0.3", "1.2", "0.006", DEEPSEEK_PRICES, "2026-11-28"),
    ModelPrice("qwen3-coder-480b", "vllm", 16, "0", "0", "0", VLLM, "2026-11-29"),
)
MODEL_OF = {model.model: model for model in MODELS}
