"""Pages of contributors and of the architecture: everything that they name exists."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from http_facade.routes import Shape
from umg_grpc.v1 import pb
from umg_grpc.wire.text_format_interface import TextFormat
from umg_grpc.wire.unary_format_interface import UnaryFormat

ROOT = Path(__file__).parents[2]
PAGES = ("docs/contributing.md", "tests/world/README.md", "tests/proofs/README.md")
PAGE = "".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TABLES = {
    "EMBEDDING_UPSTREAMS": ("umg_grpc/wire/embedding_formats.py",),
    "RERANK_UPSTREAMS": ("umg_grpc/wire/rerank/__init__.py",),
    "EMBEDDING_FORMATS": ("umg_grpc/wire/embedding_formats.py",),
    "EMBEDDING_FACES": ("umg_grpc/wire/embedding_formats.py",),
    "RERANK_FORMATS": ("umg_grpc/wire/rerank/__init__.py",),
    "TEXT_PROTOCOLS": ("umg_grpc/wire/provider_protocols.py",),
    "FACES_ALONE": ("umg_grpc/wire/text_format_tables.py",),
    "PROVIDER_PROTOCOLS": ("umg_grpc/operations/image_operation.py", "umg_grpc/operations/video_operation.py"),
    "MODEL_CATALOGUE": ("umg_grpc/knowledge/model_catalogue.py",),
    "BUILT_IN": ("umg_grpc/config/built_in_config.py",),
    "ROUTE_TABLE": ("http_facade/routes.py",),
    "DESCRIBED_OPERATIONS": ("http_facade/openapi/operation_texts.py",),
    "BODY_TYPES": ("umg_grpc/wire/openapi_schemas/body_types.py",),
    "VIDEO_PROTOCOLS": ("umg_grpc/wire/video/__init__.py",),
    "VIDEO_ROUTES": ("http_facade/routes.py",),
    "UNSERVED_ROUTES": ("http_facade/exchange/unknown_paths.py",),
    "METHOD_SERVICES": ("http_facade/routes.py",),
    "SIGNED_SERVICES": ("http_facade/routes.py",),
    "REFUSALS": ("tests/unit/wire/test_failures.py",),
    "BODIES": ("tests/unit/wire/test_rules.py",),
    "OPERATION_ROWS": ("umg_grpc/operations/__init__.py",),
    "MODEL_OWNERS": ("umg_grpc/knowledge/families/text_model_rules.py",),
    "FAMILY_RULES": ("umg_grpc/knowledge/families/text_model_rules.py",),
    "PROVIDER_QUIRKS": ("umg_grpc/knowledge/provider_quirks.py",),
    "SERVICE_NAMES": ("umg_grpc/process/service_factory.py",),
    "SERVED": ("tests/unit/service/test_operations.py",),
    "FACES": ("tests/pairs/table.py",),
    "PROVIDERS": ("tests/pairs/table.py",),
    "STRICT_PROVIDERS": ("tests/pairs/table.py",),
    "FAULTS": ("tests/support/providers/faulty/faults.py",),
    "PROGRAMS": ("tests/world/agents/programs.py",),
    "GROWTHS": ("tests/proofs/linear/events.py",),
}
"""Table -> the files that have it according to the pages."""


def test_every_table_that_the_page_names_is_known_here() -> None:
    named = {name for name in re.findall(r"`(?!UMG_)([A-Z_]{5,})`", PAGE) if name not in Shape.__members__}
    assert {
        name for name in named if not hasattr(pb, name) and not hasattr(pb, f"ERROR_REASON_{name}")
    } == TABLES.keys()


@pytest.mark.parametrize(("name", "module"), [(name, module) for name in TABLES for module in TABLES[name]])
def test_a_table_is_in_the_file_that_the_page_names(name: str, module: str) -> None:
    assert f"`{module}`" in PAGE
    assert re.search(rf"^{name}\b", (ROOT / module).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_optional_function_of_a_format_is_named() -> None:
    both = [*fields(TextFormat), *fields(UnaryFormat)]
    optional = {each.name for each in both if each.default is None or isinstance(each.default, str | bool)}
    assert {name for name in optional if f"`{name}`" not in PAGE} == set()
    assert {"key_header", "max_items"} <= optional


def packages() -> list[str]:
    """Return the paths of all packages, relative to the repository."""
    return sorted(
        str(path.parent.relative_to(ROOT))
        for top in ("umg_grpc", "umg_sandbox", "http_facade")
        for path in (ROOT / top).rglob("__init__.py")
    )


def parts() -> set[str]:
    """Return the packages and modules in the first column of the table of parts, by their dotted names."""
    [section] = re.findall(r"\n## The parts\n(.*?)\n## ", ARCHITECTURE, re.DOTALL)
    cells = re.findall(r"^\| (`[^|]*`) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)}


@pytest.mark.parametrize("package", packages())
def test_the_first_line_of_a_package_describes_it(package: str) -> None:
    first = (ROOT / package / "__init__.py").read_text(encoding="utf-8").splitlines()[0]
    assert re.fullmatch(r'"""[A-Z].{20,}', first), first


@pytest.mark.parametrize("package", packages())
def test_every_package_belongs_to_a_part_of_the_architecture(package: str) -> None:
    dotted = package.replace("/", ".")
    assert any(f"{dotted}.".startswith(f"{part}.") for part in parts()) or dotted == "umg_grpc"


@pytest.mark.parametrize("part", sorted(parts()))
def test_every_part_of_the_architecture_exists(part: str) -> None:
    path = ROOT / part.replace(".", "/")
    assert path.is_dir() or path.with_suffix(".py").is_file()
