"""Page about following the vendors: its commands, files and packages exist."""

import re
from pathlib import Path

import pytest

from scripts.vendors import public_data, sdk_types

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "following-vendors.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
FOLDERS = ("", "umg_grpc/knowledge/data/", "umg_grpc/wire/chat/", "umg_grpc/wire/responses/")
"""Folders of the files that the page names."""


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z]+)", PAGE))))
def test_a_target_of_the_page_is_in_the_makefile(target: str) -> None:
    assert re.search(rf"^{target}: .*## ", MAKEFILE, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\b(\w+_args)=", PAGE))))
def test_arguments_of_the_page_are_passed_on(name: str) -> None:
    assert f"{name} ?=" in MAKEFILE
    assert f"$({name})" in MAKEFILE


@pytest.mark.parametrize("option", ["--json", "--installed"])
def test_options_of_the_command_are_those_of_the_page(option: str) -> None:
    assert f"vendors_args={option}" in PAGE
    assert f'"{option}"' in (ROOT / "scripts" / "vendors" / "__main__.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w/]+\.(?:json|py))`", PAGE))))
def test_a_file_of_the_page_exists(path: str) -> None:
    assert any((ROOT / folder / path).is_file() for folder in FOLDERS)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\b(tests/[\w/]+)\b(?![./])", PAGE))))
def test_tests_of_the_page_exist(path: str) -> None:
    assert (ROOT / path).is_dir()


def test_every_package_that_is_compared_is_named() -> None:
    for package in (*sdk_types.PACKAGES, *public_data.MEMBERS):
        assert f"`{package}`" in PAGE
