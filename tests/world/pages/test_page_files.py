"""Files of the pages: types of the scripts, copies of other projects, generated modules, and their English texts."""

import re
from pathlib import Path

import pytest

from scripts.pages import check_types, media_fields, vendored_files
from tests.world.pages import page_tools
from umg_grpc.v1 import pb

PLAYGROUND = vendored_files.ASSETS / "playground"
STRINGS = (PLAYGROUND / "strings.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def modules() -> Path:
    try:
        return page_tools.installed()
    except RuntimeError as error:
        pytest.skip(f"npm cannot install the tools of the pages: {str(error)[-300:]}")


@pytest.mark.usefixtures("modules")
def test_the_scripts_of_the_pages_have_no_type_errors() -> None:
    assert check_types.type_errors() == ""


@pytest.mark.usefixtures("modules")
def test_an_error_of_a_type_is_found(tmp_path: Path) -> None:
    playground = tmp_path / "assets" / "playground"
    playground.mkdir(parents=True)
    (playground.parent / "vendor").mkdir()
    (playground / "wrong.js").write_text("export const wrong = /** @type {number} */ (document.title);\n")
    assert "wrong.js(1," in check_types.type_errors(playground.parent)


def test_files_of_other_projects_are_those_of_their_packages(modules: Path) -> None:
    rows = vendored_files.vendored_files()
    assert [vendored_files.renewed(row, modules) for row in rows] == rows
    for row in rows:
        assert (vendored_files.FOLDER / row.name).read_bytes() == (modules / row.package / row.path).read_bytes()
    assert {path.name for path in vendored_files.FOLDER.iterdir()} == {row.name for row in rows} | {"packages.json"}


def test_fields_of_media_models_are_those_of_the_rules() -> None:
    written = media_fields.TARGET.read_text(encoding="utf-8")
    assert written == media_fields.text(), "run `make pages`"


def test_every_reason_of_a_failure_has_words_and_a_remedy() -> None:
    rows = set(re.findall(r"^  ([A-Z_]+): \[\"", STRINGS, re.MULTILINE))
    reasons = {name.removeprefix("ERROR_REASON_") for name, _ in pb.ErrorReason.items()} - {"UNSPECIFIED"}
    assert rows == reasons | {"OFFLINE", "UNREACHABLE", "CUT"}


def test_every_text_is_used_and_present() -> None:
    """The compiler finds names that the scripts use and that are missing. Some names have a variable end (`kind.`)."""
    names = re.findall(r'^  "([\w.]+)": "', STRINGS, re.MULTILINE)
    scripts = "\n".join(
        path.read_text(encoding="utf-8") for path in PLAYGROUND.glob("*.js") if path.name != "strings.js"
    )
    variable = re.findall(r"`([\w.]+\.)\$\{", scripts)
    placed = re.findall(r'data-(?:text|label)="([\w.]+)"', (PLAYGROUND.parent / "playground.html").read_text())
    assert set(placed) <= set(names)
    scripts += "".join(f'"{name}"' for name in placed)
    unused = [name for name in names if f'"{name}"' not in scripts and not name.startswith(tuple(variable))]
    assert unused == []


def test_no_script_writes_html_or_code() -> None:
    for path in vendored_files.ASSETS.rglob("*.js"):
        if path.parent == vendored_files.FOLDER:
            continue
        script = path.read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\"style\"",
            script,
        ), path
