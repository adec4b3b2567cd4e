"""Page on the architecture: its table has every package and module of the top level."""

import re

from tests.docs.tables import DOCS, quoted, rows

PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
SERVICE = DOCS.parent / "umg_grpc"


def test_every_package_and_module_is_in_the_table() -> None:
    named = {name for cells in rows(PAGE, "The parts") for name in quoted(cells[0])}
    files = [path.stem for path in SERVICE.glob("*.py")] + [path.parent.name for path in SERVICE.glob("*/__init__.py")]
    assert {f"umg_grpc.{name}" for name in files if name != "__init__"} | {"umg_sandbox", "http_facade"} == named


def test_the_packages_of_the_layers_that_the_table_names_exist() -> None:
    for cells in rows(PAGE, "The parts"):
        root = DOCS.parent / quoted(cells[0])[0].replace(".", "/")
        for name in re.findall(r"`([a-z_]+)`", cells[1]):
            found = root.is_dir() and (list(root.rglob(f"{name}.py")) or list(root.rglob(name)))
            assert found or name in {"pb", "rpc", "provider", "umg_grpc", "umg_sandbox", "http_facade"}, (
                cells[0],
                name,
            )
