"""What the contributors' page names is there."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from umg_grpc.wire.format import TextFormat

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
TABLES = {
    "FORMATS": ("umg_grpc/wire/__init__.py", "umg_grpc/wire/state.py"),
    "PROTOCOLS": ("umg_grpc/config/channels.py",),
    "SERVED_PROTOCOLS": ("umg_grpc/config/channels.py",),
    "KEY_HEADERS": ("umg_grpc/config/channels.py", "http_facade/auth.py"),
    "CONVERSATION_FIELDS": ("umg_grpc/service/conversations.py",),
    "ROUTES": ("http_facade/routes.py",),
    "UNSERVED": ("http_facade/routes.py",),
    "ERROR_FORMATS": ("http_facade/routes.py",),
    "BODIES": ("tests/wire/test_rules.py",),
    "OWNERS": ("umg_grpc/families.py",),
    "RULES": ("umg_grpc/families.py",),
    "SERVICES": ("umg_grpc/server.py",),
    "SERVED": ("tests/service/test_operations.py",),
}
"""Where the page says that each table stands."""


def test_every_table_that_the_page_names_is_known_here() -> None:
    assert set(re.findall(r"`([A-Z_]{5,})`", PAGE)) == TABLES.keys()


@pytest.mark.parametrize(("name", "module"), [(name, module) for name in TABLES for module in TABLES[name]])
def test_a_table_stands_where_the_page_says(name: str, module: str) -> None:
    assert f"`{module}`" in PAGE
    assert re.search(rf"^{name}\b", (ROOT / module).read_text(encoding="utf-8"), re.MULTILINE)


def test_all_that_only_some_formats_have_is_named() -> None:
    optional = {
        each.name for each in fields(TextFormat) if each.default is None or isinstance(each.default, str | bool)
    }
    assert {name for name in optional if f"`{name}`" not in PAGE} == set()
    assert "key_header" in optional
