"""What the documents say is true: examples run, commands and links exist."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.processes import Served, run, serve
from umg_grpc.config import parse

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("*/*/README.md")])


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


EXAMPLES = [("bash", block) for block in blocks("bash") if "curl" in block] + [
    ("python", block) for block in blocks("python")
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    async with serve(tmp_path_factory.mktemp("readme"), environment={"UMG_API_KEY": "sk-umg-readme"}) as made:
        yield made


def test_there_are_examples_of_each_kind() -> None:
    text = "".join(block for _, block in EXAMPLES)
    assert all(word in text for word in ("curl", "from openai import", "import umg_client"))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("language", "block"), EXAMPLES, ids=[block.split("\n", 1)[0] for _, block in EXAMPLES])
async def test_an_example_runs_as_it_stands(language: str, block: str, served: Served) -> None:
    here = block.replace("http://127.0.0.1:8080", served.http).replace("127.0.0.1:50051", served.grpc)
    command = ["bash", "-euc", here] if language == "bash" else [sys.executable, "-W", "error", "-c", here]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "UMG_API_KEY": served.key},
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err.decode()
    assert len(out.strip()) > 3


async def test_the_key_command_of_the_table_works(tmp_path: Path) -> None:
    found = re.search(r"`umg (keys create NAME .*?)`", README)
    assert found is not None
    arguments = [word.strip("'") for word in found[1].split()]
    code, out, err = await run(*arguments, "--data", str(tmp_path))
    assert code == 0, err
    assert out.splitlines()[-1].startswith("sk-umg-")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_files_that_a_document_links_to_exist(document: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()) if "://" not in link]
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_modules_that_a_document_names_exist(document: Path) -> None:
    named = re.findall(r"`((?:umg_grpc|http_facade|proto|tests|clients)/[\w/.-]+)`", document.read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_make_lists_the_targets_that_the_documents_name() -> None:
    listed = subprocess.run(["make", "-C", str(ROOT)], check=True, capture_output=True, text=True).stdout
    targets = {
        target for document in DOCUMENTS for target in re.findall(r"(?<![\w-])make ([a-z]+)\b", document.read_text())
    }
    assert {"serve", "test", "check", "proto"} <= targets
    assert [target for target in targets if f"make {target}" not in listed] == []


def test_the_config_of_the_operators_page_is_taken() -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/operating.md").read_text(), re.DOTALL)
    environment = {"UMG_SECRET": "x" * 16, "PROVIDER_KEY": "sk-provider"}
    config = parse(text, "operating.md", environment)
    assert [channel.name for channel in config.channels] == ["main", "local", "sandbox"]
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
