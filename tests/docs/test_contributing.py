"""What the contributors' page names is there."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from http_facade.routes import Shape
from umg_grpc.wire.format import TextFormat
from umg_grpc.wire.unary import UnaryFormat

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
TABLES = {
    "FORMATS": ("umg_grpc/wire/__init__.py", "umg_grpc/wire/state.py"),
    "EMBEDDING_FORMATS": ("umg_grpc/wire/__init__.py",),
    "RERANK_FORMATS": ("umg_grpc/wire/__init__.py",),
    "TEXT_PROTOCOLS": ("umg_grpc/config/channels.py",),
    "EMBEDDING_PROTOCOLS": ("umg_grpc/config/channels.py",),
    "RERANK_PROTOCOLS": ("umg_grpc/config/channels.py",),
    "CATALOGUE": ("umg_grpc/catalogue.py",),
    "BUILT_IN": ("umg_grpc/config/built_in.py",),
    "KEY_HEADERS": ("umg_grpc/config/channels.py", "http_facade/auth.py"),
    "CONVERSATION_FIELDS": ("umg_grpc/service/conversations.py",),
    "ROUTES": ("http_facade/routes.py",),
    "UNSERVED": ("http_facade/routes.py",),
    "ERROR_FORMATS": ("http_facade/routes.py",),
    "BODIES": ("tests/wire/test_rules.py",),
    "OWNERS": ("umg_grpc/families.py",),
    "RULES": ("umg_grpc/families.py",),
    "PROVIDER_QUIRKS": ("umg_grpc/quirks.py",),
    "SERVICES": ("umg_grpc/server.py",),
    "SERVED": ("tests/service/test_operations.py",),
    "FAULTS": ("tests/faults/faults.py",),
    "PROGRAMS": ("tests/agents/programs.py",),
}
"""Where the page says that each table stands."""


def test_every_table_that_the_page_names_is_known_here() -> None:
    assert set(re.findall(r"`([A-Z_]{5,})`", PAGE)) - Shape.__members__.keys() == TABLES.keys()


@pytest.mark.parametrize(("name", "module"), [(name, module) for name in TABLES for module in TABLES[name]])
def test_a_table_stands_where_the_page_says(name: str, module: str) -> None:
    assert f"`{module}`" in PAGE
    assert re.search(rf"^{name}\b", (ROOT / module).read_text(encoding="utf-8"), re.MULTILINE)


def test_all_that_only_some_formats_have_is_named() -> None:
    both = [*fields(TextFormat), *fields(UnaryFormat)]
    optional = {each.name for each in both if each.default is None or isinstance(each.default, str | bool)}
    assert {name for name in optional if f"`{name}`" not in PAGE} == set()
    assert {"key_header", "most_items"} <= optional


MAP = {
    "http_facade": "http_facade",
    "umg_grpc": "umg_grpc",
    "umg_grpc/wire": "umg_grpc/wire",
    "umg_grpc/config": "umg_grpc/config",
    "umg_grpc/routing": "umg_grpc/routing",
    "umg_grpc/access": "umg_grpc/access",
    "umg_grpc/store": "umg_grpc/store",
    "umg_grpc/service": "umg_grpc/service",
    "umg_grpc/upstream": "umg_grpc/upstream",
    "umg_grpc/upstream/lean": "umg_grpc/upstream/lean",
    "umg_grpc/upstream/local": "umg_grpc/upstream/local",
    "umg_grpc/upstream/local/wordllama": "umg_grpc/upstream/local",
}
"""Package -> the row of the map that names all its modules."""


@pytest.mark.parametrize("package", MAP)
def test_the_map_names_every_module(package: str) -> None:
    named = set(re.findall(r"`(\w+)`", row_of(MAP[package])))
    modules = {path.stem for path in (ROOT / package).glob("*.py")} - {"__init__"}
    assert modules - named == set()


@pytest.mark.parametrize("package", re.findall(r"^\| `([\w/]+)` \|", PAGE, re.MULTILINE))
def test_the_map_names_no_module_that_there_is_not(package: str) -> None:
    there = {path.stem for path in (ROOT / package).rglob("*")}
    assert [name for name in re.findall(r"`(\w+)`", row_of(package)) if name not in there] == []


def row_of(package: str) -> str:
    """What the map says of a package."""
    [row] = re.findall(rf"^\| `{package}` \| (.*) \|$", PAGE, re.MULTILINE)
    return str(row)
