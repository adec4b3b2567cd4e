"""Examples, commands and links of the documents: the examples run, and the commands and link targets exist."""

import asyncio
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from http_facade.routes import ROUTE_TABLE
from tests.docs.recording.picture import PAGE as RECORDING
from tests.docs.recording.picture import steps_of
from tests.docs.recording.session import Step, commands, session, shape, shown
from tests.support.databases import create_database
from tests.support.processes import Served, run
from tests.world.sdk.node_runner import NODE, installed
from tests.world.sdk.runner import installed_or_skipped
from umg_grpc.config import parse
from umg_grpc.knowledge.families.image_model_rules import IMAGE_FAMILIES
from umg_grpc.knowledge.families.text_model_rules import TEXT_FAMILIES
from umg_grpc.knowledge.families.video_model_rules import VIDEO_FAMILIES
from umg_grpc.process.service_factory import SERVICE_NAMES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
FIRST_CALLS = (ROOT / "docs/first-calls.md").read_text()
FEATURES = (ROOT / "docs/features.md").read_text()
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("*/*/README.md")])


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README + FIRST_CALLS, re.DOTALL)


EXAMPLES = [("bash", block) for block in blocks("bash") if "curl" in block] + [
    (language, block) for language in ("python", "js") for block in blocks(language)
]


@dataclass(frozen=True)
class Example:
    """Example of the page: a text that identifies it, and its output."""

    id: str
    word: str
    prints: str  # a regular expression


SIMULATED = "imulated"
SCORED = r"0\.\d+ The kitten naps"
KINDS = [
    Example("curl, chat", "v1/chat/completions \\", "delta"),
    Example("curl, native", ":streamGenerateContent", SIMULATED),
    Example("curl, embeddings", "v1/embeddings \\", r'"embedding":\[-?0\.\d+'),
    Example("curl, rerank", "v1/rerank \\", r'"index":1,"relevance_score":0\.\d+,"document":"The kitten'),
    Example("curl, models", "v1/models -H", '"id":"wordllama-rerank"'),
    Example("curl, Connect", "GenerationService/Generate \\", r'"finishReason": "FINISH_REASON_'),
    Example("openai, chat", 'client.chat.completions.create(model="famC', SIMULATED),
    Example("openai", "client.responses", SIMULATED),
    Example("openai, embeddings", "client.embeddings", rf"^1\.0 A cat.*\n{SCORED}"),
    Example("anthropic", "from anthropic import", SIMULATED),
    Example("google-genai", "from google import", SIMULATED),
    Example("cohere", "import cohere", rf"^{SCORED}"),
    Example("gRPC", "import umg_client", "..."),
    Example("JavaScript", 'from "@anthropic-ai/sdk"', SIMULATED),
]
ADDRESSES = ("http://127.0.0.1:8080", "127.0.0.1:50051")


def kind(example: tuple[str, str]) -> Example:
    return next((known for known in KINDS if known.word in example[1]), Example("of no kind", "", ""))


def test_there_is_an_example_of_each_kind() -> None:
    assert [kind(example) for example in EXAMPLES] == KINDS


def node_packages() -> Path:
    """Return the directory of the JavaScript SDKs."""
    return installed_or_skipped(installed).root


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: kind(example).id)
async def test_an_example_runs_unchanged(example: tuple[str, str], served: Served) -> None:
    language, block = example
    assert any(address in block for address in ADDRESSES)
    here = block.replace(ADDRESSES[0], served.http).replace(ADDRESSES[1], served.grpc)
    command, folder = {
        "bash": lambda: (["bash", "-euc", here], None),
        "python": lambda: ([sys.executable, "-W", "error", "-c", here], None),
        "js": lambda: ([str(NODE), "--input-type=module", "--eval", here], node_packages()),
    }[language]()
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "UMG_API_KEY": served.key},
        cwd=folder,
    )
    out, err = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode == 0, err.decode()
    assert len(out.strip()) > 3
    assert b'"error"' not in out
    assert re.search(kind(example).prints, out.decode())


async def test_the_recording_shows_the_commands_of_the_page_and_their_output(tmp_path: Path) -> None:
    """Otherwise run `make recording`."""
    recorded = steps_of(RECORDING.read_text(encoding="utf-8"))
    assert [step.command for step in recorded] == commands(README)
    made = [Step(step.command, shape(shown(step.output))) for step in await session(tmp_path)]
    assert [Step(step.command, shape(step.output)) for step in recorded] == made


def test_the_recording_agrees_with_the_sentence_about_the_start() -> None:
    start, *_, stream, program = steps_of(RECORDING.read_text(encoding="utf-8"))
    [stated] = re.findall(r"^make serve +# (.*)$", README, re.MULTILINE)
    assert "prints a key and a curl line" in stated
    assert re.search(r"^  key     sk-umg-", start.output, re.MULTILINE)
    assert re.search(r"^curl ", start.output, re.MULTILINE)
    for address in (ADDRESSES[0].removeprefix("http://"), ADDRESSES[1].removeprefix("127.0.0.1")):
        assert address in stated
        assert address in start.output
    assert stream.output.rstrip().endswith("data: [DONE]")
    assert re.search(SIMULATED, program.output)


def test_every_path_of_the_gateway_is_on_the_page_and_every_one_on_the_page_is_served() -> None:
    def plain(path: str) -> str:
        return re.sub(r"\{.*?\}", "{}", path)

    paths = {route.path for route in ROUTE_TABLE}
    served = {
        (route.method, plain(route.path))
        for route in ROUTE_TABLE
        if not route.path.startswith("/v1/models/{model:.+}:")
        and route.path.removesuffix("/") not in paths - {route.path}
    }
    pairs = re.findall(r"`((?:GET|POST|PATCH|DELETE)(?:` and `(?:GET|POST|PATCH|DELETE))*) (/\S*)`", FEATURES)
    named = {(method, plain(path)) for methods, path in pairs for method in re.findall("[A-Z]+", methods)}
    assert named == served


def test_every_service_that_is_served_over_grpc_is_on_the_page() -> None:
    assert sorted(set(re.findall(r"`(umg\.v1\.\w+Service)`", FEATURES))) == SERVICE_NAMES


async def test_the_key_command_of_the_table_works(tmp_path: Path) -> None:
    found = re.search(r"`umg (keys create NAME .*?)`", FEATURES)
    assert found is not None
    arguments = [word.strip("'") for word in found[1].split()]
    await create_database(tmp_path)
    code, out, err = await run(*arguments, "--data", str(tmp_path))
    assert code == 0, err
    assert out.splitlines()[-1].startswith("sk-umg-")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_files_that_a_document_links_to_exist(document: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()) if "://" not in link]
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_modules_that_a_document_names_exist(document: Path) -> None:
    named = re.findall(
        r"(?<![\w/(.])((?:umg_grpc|umg_sandbox|http_facade|proto|tests|clients)/[\w/.-]*\w)(?![\w/<])",
        document.read_text(),
    )
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_config_of_the_page_is_valid() -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    config = parse(text, "umg.yaml", {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"})
    assert [channel.name for channel in config.channels] == ["openai", "anthropic", "ollama"]


def test_the_figures_of_the_comparison_are_those_of_the_conformance_page() -> None:
    found = re.search(r"LiteLLM\]\(\S+\) ([\d.]+) .* passes (\d+) of the (\d+) checks", README)
    assert found is not None
    page = (ROOT / "docs/conformance.md").read_text()
    assert f"### LiteLLM proxy {found[1]}\n" in page
    assert f"{found[2]} of {found[3]} checks passed" in page.partition(f"LiteLLM proxy {found[1]}")[2]


def test_the_page_explains_the_names_of_all_families() -> None:
    [sentence] = re.findall(r"^The names `famC`.*?\n\n", README, re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"`(\w+)`", sentence))
    ranges = re.findall(r"`(\w+)` to `(\w+)`", sentence)
    between = {f"{first[:-1]}{chr(code)}" for first, last in ranges for code in range(ord(first[-1]), ord(last[-1]))}
    assert {*TEXT_FAMILIES, *IMAGE_FAMILIES, *VIDEO_FAMILIES} - named - between == set()


def test_make_lists_the_targets_that_the_documents_name() -> None:
    listed = subprocess.run(["make", "-C", str(ROOT)], check=True, capture_output=True, text=True).stdout
    targets = {
        target
        for document in DOCUMENTS
        for target in re.findall(r"(?:`|^)make ([a-z]+)\b", document.read_text(), re.MULTILINE)
    }
    assert {"serve", "test", "check", "proto"} <= targets
    assert [target for target in targets if f"make {target}" not in listed] == []


def test_the_config_of_the_operators_page_is_valid() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/operating.md").read_text(), re.DOTALL)
    [text] = [block for block in blocks if "\nchannels:" in block]
    environment = {"UMG_SECRET": "x" * 16, "PROVIDER_KEY": "sk-provider"}
    config = parse(text, "operating.md", environment)
    assert [channel.name for channel in config.channels] == ["main", "ranking", "local", "sandbox"]
    commented = "\n".join(re.sub(r"^( +)# (\w+: )", r"\1\2", line) for line in text.splitlines())
    assert parse(commented, "operating.md", environment).channels[0].proxy


async def test_the_commands_of_the_operators_page_exist() -> None:
    text = (ROOT / "docs/operating.md").read_text()
    usage = re.search(r"```\n(umg serve.*?)```", text, re.DOTALL)
    assert usage is not None
    for line in usage[1].splitlines():
        words = line.split("  ")[0].split()
        command = [word for word in words[1:3] if word.isalpha() and word.islower()]
        code, out, err = await run(*command, "--help")
        assert code == 0, (command, err)
        flags = re.findall(r"--\w+", line.split("   ")[0])
        assert [flag for flag in flags if flag not in out] == [], command
