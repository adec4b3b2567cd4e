"""docs/conformance.md describes the language of the files, the faces, the options and the peers of its results."""

import re

import typer
from umg_conformance.check_files import CHECKS_FOLDER, Expectation, Request, read_folder
from umg_conformance.model_choice import kinds

from tests.world.conformance.page import MARK, PAGE
from tests.world.conformance.peers import PEERS
from umg_grpc.cli.commands import app

TEXT, _, RESULTS = PAGE.read_text(encoding="utf-8").partition(MARK)
WORDS = set(re.findall(r"[\w-]+", " ".join(re.findall(r"`([^`\n]+)`", TEXT))))


def test_the_page_has_every_subject_and_predicate() -> None:
    assert set(Expectation.__struct_fields__) - WORDS == set()


def test_the_page_has_every_field_of_a_request_and_every_kind_of_models() -> None:
    assert set(Request.__struct_fields__) - WORDS == set()
    assert set(kinds()) - WORDS == set()


def test_the_page_has_every_face() -> None:
    assert {file.face for file in read_folder(CHECKS_FOLDER)} - WORDS == set()


def test_the_page_has_every_option() -> None:
    command = typer.main.get_command(app).commands["conformance"]  # type: ignore[attr-defined]
    options = {name for each in command.params for name in each.opts if name.startswith("--")}
    assert {name.removeprefix("--") for name in options} - {word.removeprefix("--") for word in WORDS} - {
        "key"
    } == set()


def test_the_results_are_of_the_versions_that_are_run() -> None:
    for peer in PEERS.values():
        assert f"### {peer.name} {peer.version}\n" in RESULTS
    assert re.search(r"Run on \d{4}-\d\d-\d\d by `make conformance`", RESULTS)
    assert "### This gateway\n" in RESULTS
