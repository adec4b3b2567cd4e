"""Command `umg models`: its output on a config, on the calls of a key, and on a running gateway."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.databases import create_database
from tests.support.processes import run, serve

CONFIG = """\
channels:
- {name: main, protocols: [chat], base_url: "http://127.0.0.1:1", weight: 3, models: [m, "open-*"]}
- {name: other, protocols: [chat], base_url: "http://127.0.0.1:1", models: [{id: m, upstream: real}]}
- {name: spare, protocols: [messages, embeddings], base_url: "http://127.0.0.1:1", priority: 1, models: [m]}
models:
  m: {price: {input: 2.5, output: 10}}
aliases: {fast: m}
"""
NO_GATEWAY = ("--http", "127.0.0.1:1")
KEYS = (
    ("fast", "--channels", "oth*,x", "--models", "fast"),
    ("narrow", "--channels", "other", "--models", "m"),
    ("lost", "--channels", "nowhere"),
    ("ranks", "--operations", "rerank"),
    ("spender", "--budget", "5"),
)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    return written(tmp_path)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def with_keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    files = written(tmp_path_factory.mktemp("keys"))
    await create_database(Path(files[-1]))
    for name, *options in KEYS:
        await run("keys", "create", name, *options, *files)
    return files


def written(directory: Path) -> tuple[str, ...]:
    (directory / "umg.yaml").write_text(CONFIG)
    return ("--config", str(directory / "umg.yaml"), "--data", str(directory / "data"))


def table(out: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip().split("  ") if cell.strip()] for line in out.splitlines()]


async def test_models_and_aliases_are_listed_with_their_channels(files: tuple[str, ...]) -> None:
    code, out, _ = await run("models", *NO_GATEWAY, *files)
    order = "main (m), other (real), spare (m)"
    assert code == 0
    assert table(out) == [
        ["model", "owned by", "family", "channels in order", "price", "state"],
        ["m", "main", order, "2.5 / 10", "-, -, -"],
        ["fast = m", "main", order, "2.5 / 10", "-, -, -"],
    ]


async def test_prices_of_other_units_than_tokens_are_listed(tmp_path: Path) -> None:
    image = "{1024x1024: {low: 0.01, high: 0.2}, any: 0.05}"
    priced = CONFIG.replace("{input: 2.5, output: 10}", f"{{search: 0.002, image: {image}, video: 3}}")
    (tmp_path / "umg.yaml").write_text(priced)
    code, out, _ = await run("models", *NO_GATEWAY, "--config", str(tmp_path / "umg.yaml"), "--data", str(tmp_path))
    assert (code, table(out)[1][3]) == (0, "0.002 a search, 0.01-0.2 an image, 3 a video")


@dataclass(frozen=True)
class Explained:
    id: str
    arguments: tuple[str, ...]
    rows: tuple[str, ...]
    """Rows with cells joined by `|`, without the heads of tables."""


HEADS = ("channel|upstream model|state|reasons", "quirk|value|formats|origin|certain|source|as of")
GENERATES = "to generate text:"
EMBEDS = "to embed texts:"
PINNED = "not asked: not one of the key's channels"
NOT_EMBEDDING = ("main|m|-|not asked: it cannot embed texts", "other|real|-|not asked: it cannot embed texts")
OVERRIDDEN = "`quirks` of the channel override them:"
OF_OPENAI = "rejects|[moderation, prompt_cache_key, prompt_cache_options, prompt_cache_retention, safety_identifier, service_tier, store, verbosity]|chat|provider|no|Gitlawb/openclaude#739, yetone/avante.nvim#2347, charmbracelet/crush#1590: strict providers refuse members that only OpenAI has|2026-11-28"
RESTRICTIONS = (
    f"restrictions of m at main (unknown vendor; as m); {OVERRIDDEN}",
    OF_OPENAI,
    f"restrictions of real at other (unknown vendor; as real); {OVERRIDDEN}",
    OF_OPENAI,
    "restrictions of m at spare: none is known",
)
EXPLAINED = [
    Explained("a model", ("m",), (GENERATES, "main|m|-|priority 0, weight 3 of 4", "other|real|-|priority 0, weight 1 of 4", "spare|m|-|priority 1", EMBEDS, "spare|m|-|priority 1", *NOT_EMBEDDING, *RESTRICTIONS)),
    Explained("a call in a format", ("m", "--face", "messages"), (GENERATES, "main|m|-|priority 0, translated to chat, weight 3 of 4", "other|real|-|priority 0, translated to chat, weight 1 of 4", "spare|m|-|priority 1, supports messages", EMBEDS, "spare|m|-|priority 1", *NOT_EMBEDDING, *RESTRICTIONS)),
    Explained("an alias, by a key", ("fast", "--key", "fast"), ("fast is served as m", GENERATES, "other|real|-|priority 0", f"main|m|-|{PINNED}", f"spare|m|-|{PINNED}", *RESTRICTIONS)),
    Explained("a key with a budget", ("m", "--key", "spender"), (GENERATES, "main|m|-|priority 0, weight 3 of 4", "other|real|-|priority 0, weight 1 of 4", "spare|m|-|priority 1", EMBEDS, "spare|m|-|priority 1", *NOT_EMBEDDING, *RESTRICTIONS)),
    Explained("a model of a pattern", ("open-1",), (GENERATES, "main|open-1|-|priority 0", f"restrictions of open-1 at main (unknown vendor; as open-1); {OVERRIDDEN}", OF_OPENAI)),
]  # fmt: skip


@pytest.mark.parametrize("case", EXPLAINED, ids=lambda case: case.id)
async def test_the_order_of_the_channels_is_explained(case: Explained, with_keys: tuple[str, ...]) -> None:
    code, out, err = await run("models", "--explain", *case.arguments, *NO_GATEWAY, *with_keys)
    rows = ["|".join(cells) for cells in table(out)]
    assert (code, err) == (0, "")
    assert [row for row in rows if row not in HEADS] == list(case.rows)


async def test_channels_without_a_price_are_skipped_for_a_key_with_a_budget(tmp_path: Path) -> None:
    files = written(tmp_path)
    (tmp_path / "umg.yaml").write_text(
        CONFIG.replace("weight: 3", "unpriced: free, weight: 3").split("models:\n  m:")[0]
    )
    await create_database(tmp_path / "data")
    await run("keys", "create", "spender", "--budget", "5", *files)
    code, out, _ = await run("models", "--explain", "m", "--key", "spender", *NO_GATEWAY, *files)
    reasons = [row[-1] for row in table(out)[2:5]]
    unpriced = "not asked: it has no price, and the key has a budget"
    assert (code, reasons) == (0, ["priority 0, weight 3 of 4", unpriced, unpriced])


@dataclass(frozen=True)
class Refused:
    id: str
    arguments: tuple[str, ...]
    expected_message: str
    code: int = 1


REFUSED = [
    Refused("an unknown model", ("--explain", "gpt-5"), "The model `gpt-5` does not exist"),
    Refused("a mistyped model", ("--explain", "fastt"), "Did you mean `fast`?"),
    Refused("a model that the key may not use", ("--explain", "open-1", "--key", "narrow"), "may not use the model `open-1`"),
    Refused("channels that the key may not use", ("--explain", "m", "--key", "lost"), "none of the channels of this API key"),
    Refused("operations that the key may not use", ("--explain", "m", "--key", "ranks"), "may use no operation of `m`; it may use rerank"),
    Refused("a model without a price", ("--explain", "open-1", "--key", "spender"), "`open-1` has no price, and this API key has a budget"),
    Refused("an unknown key", ("--explain", "m", "--key", "nobody"), "there is no such key"),
    Refused("an unknown format", ("--explain", "m", "--face", "soap"), "expected one of chat, responses", 2),
    Refused("a key for nothing", ("--key", "narrow"), "it goes with --explain MODEL", 2),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
async def test_the_reason_of_a_refused_call_is_reported(case: Refused, with_keys: tuple[str, ...]) -> None:
    code, out, err = await run("models", *case.arguments, *NO_GATEWAY, *with_keys)
    assert (code, out) == (case.code, "")
    assert case.expected_message in " ".join(err.split())


KNOWN = """\
channels:
- {name: claude, provider: anthropic, api_key: x, quirks: {max_output_tokens: 1000}, models: [{id: opus, upstream: claude-opus-4-7-20260416}]}
- {name: gpt, provider: openai, api_key: x, models: ["gpt-*"]}
- {name: relay, protocols: [chat], base_url: "http://127.0.0.1:1", models: [{id: old, upstream: anthropic/claude-sonnet-4.5}]}
- {name: vectors, provider: voyage, api_key: x, models: [voyage-4-large]}
- {name: only, provider: mistral, api_key: x, models: [mistral-embed]}
- {name: ranks, provider: dashscope, api_key: x, models: [qwen3-rerank]}
aliases: {best: opus}
"""


@dataclass(frozen=True)
class Restricted:
    id: str
    model: str
    head: str
    """Beginning of the line in front of the table."""
    rows: tuple[str, ...]
    """Rows with cells joined by `|`, without the source."""
    further: str = ""


RESTRICTED = [
    Restricted(
        "a known model by an alias",
        "best",
        "restrictions of claude-opus-4-7-20260416 at claude (anthropic; as claude-opus-4-7-20260416, claude-opus-4-7)",
        ("sampling|never|messages|model|yes", "thinking|off|messages|model|yes", "max_output_tokens|1000|messages|config|yes"),
        "further facts: input_tokens 1000000, cache_min_tokens 2048\n"
        "public price: input 5, output 25, cache read 0.5, cache write 6.25, long cache write 10, search 0.01"
        " (genai-prices 0.2.3 and litellm 1.110.2, anthropic/claude-opus-4-7; 2026-11-28)",
    ),
    Restricted(
        "a model by the id of its provider",
        "claude-opus-4-7-20260416",
        "restrictions of claude-opus-4-7-20260416 at claude",
        ("schema_dialect|claude|messages|provider|yes",),
    ),
    Restricted(
        "a newer model",
        "gpt-6.3-x",
        "restrictions of gpt-6.3-x at gpt (openai; as gpt-6.3-x; a model without a row, treated as gpt-6-astra, ",
        ("efforts|[low, medium, high, xhigh, max]|responses, chat|model, inherited|no", "chat_tools|never|chat|model, inherited|no"),
    ),
    Restricted(
        "a model that makes vectors",
        "voyage-4-large",
        "restrictions of voyage-4-large at vectors (voyage; as voyage-4-large)",
        (
            "renames|{dimensions: output_dimension}|embeddings|provider|yes",
            "leaves_out|{user: any, encoding_format: float}|embeddings|provider|yes",
        ),
    ),
    Restricted(
        "a model that makes vectors of one length",
        "mistral-embed",
        "restrictions of mistral-embed at only (mistral; as mistral-embed)",
        ("dimensions|{only: 1024}|embeddings|provider|yes",),
    ),
    Restricted(
        "a model that ranks at another path",
        "qwen3-rerank",
        "restrictions of qwen3-rerank at ranks (dashscope; as qwen3-rerank",
        ("path|/reranks|rerank|provider|yes",),
    ),
    Restricted(
        "a model at an unknown vendor",
        "old",
        "restrictions of anthropic/claude-sonnet-4.5 at relay (unknown vendor; as claude-sonnet-4-5)",
        ("sampling|one|chat|model|no", "max_output_tokens|64000|chat|model|no"),
        "further facts: input_tokens 200000, cache_min_tokens 1024, retired 2026-11-30",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", RESTRICTED, ids=lambda case: case.id)
async def test_the_restrictions_of_a_model_are_explained_with_their_sources(case: Restricted, tmp_path: Path) -> None:
    (tmp_path / "umg.yaml").write_text(KNOWN)
    files = ("--config", str(tmp_path / "umg.yaml"), "--data", str(tmp_path / "data"))
    code, out, err = await run("models", "--explain", case.model, *NO_GATEWAY, *files)
    assert (code, err) == (0, "")
    assert f"\n{case.head}" in out
    rows = ["|".join(cells[:5]) for cells in table(out)]
    assert set(case.rows) <= set(rows)
    assert case.further in out


async def test_the_settings_of_a_pinned_key_are_shown(files: tuple[str, ...]) -> None:
    await create_database(Path(files[-1]))
    await run("keys", "create", "narrow", "--channels", "oth*, main", "--show-route", *files)
    await run("keys", "create", "wide", *files)
    _, out, _ = await run("keys", "list", "--csv", *files)
    narrow, wide = csv.DictReader(io.StringIO(out))
    assert [(row["name"], row["channels"], row["route"]) for row in (narrow, wide)] == [
        ("narrow", "oth*, main", "shown"),
        ("wide", "all", "hidden"),
    ]
    code, _, err = await run("keys", "create", "x", "--channels", ",", *files)
    assert (code, "every channel is allowed" in " ".join(err.split())) == (2, True)


async def test_a_running_gateway_reports_the_state_of_its_channels(files: tuple[str, ...], tmp_path: Path) -> None:
    async with serve(tmp_path / "data", "--config", files[1]) as served:
        _, out, _ = await run("models", "--http", served.http.removeprefix("http://"), *files)
    assert [row[0] for row in table(out)] == ["model", "m", "fast = m"]
