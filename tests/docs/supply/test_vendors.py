"""Comparison with vendors' packages: the installed SDKs have nothing new, and each kind of news is found."""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pytest

from scripts.vendors.__main__ import installed_steps, main, newest_steps
from scripts.vendors.findings import Finding, Ignored, as_text, ignored_rows, unhandled
from scripts.vendors.public_data import model_ids, of_ai_sdk, of_cost_map
from scripts.vendors.python_types import PackageTypes, Vocabulary, of_folder
from scripts.vendors.sdk_types import PACKAGES, ROOTS, compared
from scripts.vendors.versions import of_agent, of_sdk, pinned_of_node, pinned_of_pypi
from tests.world.agents.versions import NPM
from umg_grpc.knowledge.data_files import DATA_FOLDER

ROOT = Path(__file__).parents[3]
SITE = Path(sysconfig.get_path("purelib"))


@pytest.fixture(scope="module")
def installed() -> list[Finding]:
    """Findings in the SDKs of the virtualenv, before the list is applied."""
    return [finding for _, step in installed_steps() for finding in step()]


def test_the_installed_sdks_have_nothing_that_is_neither_handled_nor_listed(installed: list[Finding]) -> None:
    """Handle a finding at the place that its line names, or list it with a reason in scripts/vendors/ignored.json."""
    assert as_text(unhandled(installed, ignored_rows())) == "nothing new"


def test_every_row_of_the_list_is_about_something_and_has_a_reason(installed: list[Finding]) -> None:
    read = {package for package, _ in installed_steps()}
    for row in ignored_rows():
        assert len(row.reason.split()) >= 4
        if row.source.partition(",")[0] in read:
            unused = [name for name in row.names if not _holds(row, name, installed)]
            assert unused == [], row.source


def _holds(row: Ignored, name: str, findings: list[Finding]) -> bool:
    only = Ignored(group=row.group, source=row.source, names=[name], reason=row.reason)
    return any(only.holds(finding) for finding in findings)


@pytest.mark.parametrize("root", [root for root in ROOTS if (SITE / PACKAGES[root.package].replace(".", "/")).is_dir()])
def test_the_types_of_the_installed_sdks_are_found(root: object) -> None:
    assert root in ROOTS
    for each in ROOTS:
        if each is root:
            types = PackageTypes(of_folder(SITE, PACKAGES[each.package]))
            assert len(set(types.members(*each.named))) > 3


def test_the_command_prints_its_flags() -> None:
    command = [sys.executable, "-m", "scripts.vendors", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    assert "--installed" in done.stdout


def test_the_command_prints_the_findings_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--installed", "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert (written["findings"], written["failed"]) == ([], [])
    assert written["listed"] > 100


def test_every_source_has_a_step() -> None:
    names = [name for name, _ in newest_steps()]
    assert len(names) == len(set(names))
    assert {*PACKAGES, *NPM, "litellm", "genai-prices", "@ai-sdk/openai"} <= set(names)


SOURCES = {
    "sdk": "",
    "sdk.kinds": """
from enum import Enum
from typing import Literal, Union
from typing_extensions import TypeAlias

Effort: TypeAlias = Literal["low", "extreme"]
Tree = Union[str, "Tree"]

class Color(str, Enum):
    RED = "red"
""",
    "sdk.body": """
from __future__ import annotations
from typing import Annotated, Iterable, Literal, Optional, TypedDict
from . import kinds
from .kinds import Color, Effort, Tree

_Reserved = TypedDict("_Reserved", {"in": str})

class Base(_Reserved, total=False):
    effort: Optional[Effort]

class Part(TypedDict):
    type: Literal["text"]
    parent: Part
    whole: Annotated[str, Field(alias="wholeText")]

class Body(Base):
    parts: Iterable[Part]
    color: kinds.Color
    tree: Tree
    model_config = {}
""",
}


def test_members_and_literals_are_read_without_an_import() -> None:
    types = PackageTypes(SOURCES)
    found = {(each.owner, each.name, each.value) for each in types.members("sdk.body", "Body")}
    assert found == {
        ("Body", "in", None),
        ("Body", "effort", None),
        ("Body", "effort", "low"),
        ("Body", "effort", "extreme"),
        ("Body", "parts", None),
        ("Body", "color", None),
        ("Body", "color", "red"),
        ("Body", "tree", None),
        ("Part", "type", None),
        ("Part", "type", "text"),
        ("Part", "parent", None),
        ("Part", "wholeText", None),
    }
    assert types.own_members("sdk.body", "Body") == {"in", "effort", "parts", "color", "tree"}
    with pytest.raises(KeyError, match=r"sdk\.body\.Missing"):
        set(types.members("sdk.body", "Missing"))


def test_words_are_those_of_names_and_texts_without_docstrings(tmp_path: Path) -> None:
    (tmp_path / "codec.py").write_text('"""Docstring."""\nFIELDS = {"cache_control.ttl": 1}\nname: int\n')
    words = Vocabulary((tmp_path,))
    assert {"cache_control", "ttl", "cache_control.ttl", "name", "FIELDS"} <= words.words
    assert "Docstring." not in words


@dataclass(frozen=True)
class News:
    """Change of an SDK's source file, and the finding that it makes."""

    id: str
    package: str
    module: str
    old: str
    new: str
    found: str


NEWS = [
    News(
        "a member of a request",
        "openai",
        "openai.types.chat.completion_create_params",
        "    top_logprobs: Optional[int]\n",
        "    top_logprobs: Optional[int]\n    telepathy: Optional[int]\n",
        "request members: CompletionCreateParamsBase.telepathy",
    ),
    News(
        "an effort",
        "openai",
        "openai.types.shared.reasoning_effort",
        '"none"',
        '"none", "telepathic"',
        "request values: reasoning_effort=telepathic",
    ),
    News(
        "a stop reason",
        "anthropic",
        "anthropic.types.stop_reason",
        '"end_turn"',
        '"end_turn", "telepathy"',
        "response values: stop_reason=telepathy",
    ),
    News(
        "a type of an event",
        "anthropic",
        "anthropic.types.raw_message_stop_event",
        'Literal["message_stop"]',
        'Literal["message_stop", "message_telepathy"]',
        "stream types: type=message_telepathy",
    ),
    News(
        "a type that moved",
        "anthropic",
        "anthropic.types.message",
        "class Message(",
        "class Telegram(",
        "types that moved: types.message.Message",
    ),
]


@pytest.mark.parametrize("case", NEWS, ids=lambda case: case.id)
def test_news_of_an_sdk_are_found(case: News) -> None:
    sources = of_folder(SITE, PACKAGES[case.package])
    assert case.old in sources[case.module]
    sources[case.module] = sources[case.module].replace(case.old, case.new)
    new = unhandled(compared(case.package, PackageTypes(sources)), ignored_rows())
    assert case.found in {f"{each.group}: {each.name}" for each in new}
    assert all(each.edit for each in new)


def test_a_change_of_the_accepted_members_of_a_strict_vendor_is_found() -> None:
    body = "class ChatCompletionRequest:\n    model: str\n    telepathy: int\n"
    types = PackageTypes({"mistralai.client": "", "mistralai.client.models.chatcompletionrequest": body})
    found = {(each.group, each.name) for each in compared("mistralai", types)}
    assert ("members that a vendor accepts", "telepathy") in found
    assert ("members that a vendor no longer accepts", "temperature") in found
    assert ("members that a vendor no longer accepts", "model") not in found


def test_models_of_the_ai_sdk_without_a_row_are_found() -> None:
    declared = "export type XaiChatModelId =\n  | 'grok-4.5'\n  | 'telepath-1'\n  | (string & {});"
    sources = {"package/src/options.ts": declared, "package/src/other.ts": "type ImageModelId = 'image-1';"}
    assert model_ids(sources) == {"grok-4.5", "telepath-1"}
    assert [each.name for each in of_ai_sdk("@ai-sdk/xai", sources)] == ["telepath-1"]


@dataclass(frozen=True)
class Changed:
    """Entry of the cost map that differs from our row, and the finding."""

    id: str
    model: str
    entry: Mapping[str, object] = field(default_factory=dict)
    found: str = ""


CHANGED = [
    Changed("new", "xai/telepath-1", {"max_output_tokens": 10}, "xai/telepath-1: new"),
    Changed("a limit", "xai/grok-4.5", {"max_input_tokens": 7}, "input_tokens 500000 -> 7"),
]


@pytest.mark.parametrize("case", CHANGED, ids=lambda case: case.id)
def test_a_change_of_the_cost_map_is_found(case: Changed) -> None:
    entry = {"litellm_provider": "xai", "mode": "chat", **case.entry}
    found = [each.name for each in of_cost_map(json.dumps({case.model: entry}).encode(), date(2026, 11, 28))]
    assert any(case.found in name for name in found), [name for name in found if "grok" in name]
    rows = json.loads((DATA_FOLDER / "generated_models.json").read_text())
    assert sum(name.endswith(": gone") for name in found) >= len(rows) - 1


def test_a_model_that_our_rows_name_and_its_vendor_retired_is_found() -> None:
    model = json.loads((DATA_FOLDER / "prices.json").read_text())[0]["model"]
    entry = {"litellm_provider": "openai", "mode": "chat", "deprecation_date": "2026-11-01"}
    data = json.dumps({model: entry}).encode()
    assert f"{model}, since 2026-11-01" in {each.name for each in of_cost_map(data, date(2026, 11, 28))}
    assert f"{model}, since 2026-11-01" not in {each.name for each in of_cost_map(data, date(2026, 10, 28))}


def test_older_versions_of_the_tests_are_found() -> None:
    assert list(of_sdk("openai", "3.57.0", "3.57.0")) == []
    assert [each.name for each in of_sdk("openai", "3.57.0", "9.0.0")] == ["3.57.0 -> 9.0.0"]
    name, pinned = next(iter(NPM.items()))
    assert list(of_agent(name, pinned)) == []
    assert [each.name for each in of_agent(name, "9.0.0")] == [f"{pinned} -> 9.0.0"]
    assert pinned_of_pypi("openai")
    assert pinned_of_node()["@ai-sdk/openai"]
