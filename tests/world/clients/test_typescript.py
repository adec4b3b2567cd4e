"""The build of the TypeScript client generates its code as `buf.gen.yaml`, the template for all languages, does."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
CLIENT = ROOT / "clients/typescript"


def template(folder: Path) -> dict[str, Any]:
    """Return the template of a directory, with its paths from the root."""
    loaded: dict[str, Any] = yaml.safe_load((folder / "buf.gen.yaml").read_text(encoding="utf-8"))
    for source in loaded["inputs"]:
        source["directory"] = (folder / source["directory"]).resolve()
        source["exclude_paths"] = [(folder / path).resolve() for path in source["exclude_paths"]]
    for plugin in loaded["plugins"]:
        plugin["out"] = (folder / plugin["out"]).resolve()
    return loaded


def test_its_template_has_the_input_and_the_options_of_that_for_all_languages() -> None:
    ours, common = template(CLIENT), template(ROOT)
    [plugin] = ours["plugins"]
    assert ours["inputs"] == common["inputs"]
    assert plugin in [each | {"local": plugin["local"]} for each in common["plugins"]]


def test_both_name_the_same_version_of_the_generator() -> None:
    package = yaml.safe_load((CLIENT / "package.json").read_text(encoding="utf-8"))  # JSON is YAML
    version = package["devDependencies"]["@bufbuild/protoc-gen-es"]
    assert f"@bufbuild/protoc-gen-es@{version}" in (ROOT / "buf.gen.yaml").read_text(encoding="utf-8")


def test_the_commands_for_a_copy_of_the_schema_name_the_same_versions() -> None:
    package = yaml.safe_load((CLIENT / "package.json").read_text(encoding="utf-8"))
    versions = {**package["dependencies"], **package["devDependencies"]}
    named = re.findall(r"(@[\w-]+/[\w-]+)@([\d.]+)", (ROOT / "proto/README.md").read_text(encoding="utf-8"))
    assert len(named) == 4
    assert named == [(name, versions[name]) for name, _ in named]
