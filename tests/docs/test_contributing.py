"""Contributors' page: everything that it names exists."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from http_facade.routes import Shape
from umg_grpc.wire.text_format import TextFormat
from umg_grpc.wire.unary_format import UnaryFormat

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
TABLES = {
    "FORMATS": ("umg_grpc/wire/__init__.py",),
    "EMBEDDING_FORMATS": ("umg_grpc/wire/__init__.py",),
    "RERANK_FORMATS": ("umg_grpc/wire/__init__.py",),
    "CATALOGUE": ("umg_grpc/catalogue.py",),
    "BUILT_IN": ("umg_grpc/config/built_in.py",),
    "ROUTES": ("http_facade/routes.py",),
    "UNSERVED": ("http_facade/routes.py",),
    "BODIES": ("tests/wire/test_rules.py",),
    "OWNERS": ("umg_grpc/families.py",),
    "RULES": ("umg_grpc/families.py",),
    "PROVIDER_QUIRKS": ("umg_grpc/quirks.py",),
    "SERVICES": ("umg_grpc/server.py",),
    "SERVED": ("tests/service/test_operations.py",),
    "FAULTS": ("tests/support/providers/faulty/faults.py",),
    "PROGRAMS": ("tests/agents/programs.py",),
    "GROWTHS": ("tests/linear/events.py",),
}
"""Table -> the files in which the page says that it is."""


def test_every_table_that_the_page_names_is_known_here() -> None:
    assert set(re.findall(r"`([A-Z_]{5,})`", PAGE)) - Shape.__members__.keys() == TABLES.keys()


@pytest.mark.parametrize(("name", "module"), [(name, module) for name in TABLES for module in TABLES[name]])
def test_a_table_is_in_the_file_that_the_page_names(name: str, module: str) -> None:
    assert f"`{module}`" in PAGE
    assert re.search(rf"^{name}\b", (ROOT / module).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_optional_function_of_a_format_is_named() -> None:
    both = [*fields(TextFormat), *fields(UnaryFormat)]
    optional = {each.name for each in both if each.default is None or isinstance(each.default, str | bool)}
    assert {name for name in optional if f"`{name}`" not in PAGE} == set()
    assert {"key_header", "most_items"} <= optional


def packages() -> set[str]:
    """Return all packages but those of one wire format or one local model, and migrations, by their paths."""
    own = {
        str(path.parent.relative_to(ROOT))
        for top in ("umg_grpc", "http_facade")
        for path in (ROOT / top).rglob("__init__.py")
    }
    formats = {f"umg_grpc/wire/{path.parent.name}" for path in (ROOT / "umg_grpc/wire").glob("*/schema.py")}
    return own - formats - {"umg_grpc/wire/models", "umg_grpc/upstream/local/wordllama", "umg_grpc/v1"}


def test_the_map_has_a_row_for_every_package() -> None:
    assert set(re.findall(r"^\| `([\w/]+)` \|", PAGE, re.MULTILINE)) == packages()


@pytest.mark.parametrize("package", re.findall(r"^\| `([\w/]+)` \|", PAGE, re.MULTILINE))
def test_every_module_of_the_map_exists(package: str) -> None:
    there = {path.stem for path in (ROOT / package).glob("*")}
    named = set(re.findall(r"`([a-z_]+)`", row_of(package)))
    assert named - there == set()


def row_of(package: str) -> str:
    """Return the row of the map for a package."""
    [row] = re.findall(rf"^\| `{package}` \| (.*) \|$", PAGE, re.MULTILINE)
    return str(row)
