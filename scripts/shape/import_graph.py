"""Measures of the import graph: loose modules, layers, rooms with their arrows, and the pure core.

A **room** is a package or module directly below `umg_grpc`, or another package as a whole; an **arrow** is a pair of
rooms of which one imports the other.

The **pure core** has the modules of the gateway that do no input or output and read no clock, chance or environment: a
module is pure if it imports none of `IMPURE`, opens no file, and imports pure modules only. Files that are part of the
package count as code, so that the two modules that read them (`SHIPPED`) are pure. Its share is in lines of code.
"""

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import grimp

from scripts.shape.measure import Measure

ROOT = Path(__file__).parents[2]
PRODUCT = ("umg_grpc", "http_facade")
PACKAGES = (*PRODUCT, "umg_sandbox", "umg_conformance", "umg_client", "bench", "scripts")
TOP_OF_FACADE = frozenset(
    {"app", "body_decompression", "dispatcher", "path_router", "path_spellings", "routes", "thread_offload"}
)
"""Modules directly in `http_facade`: its table of paths, and the way of a request to its handler."""
IMPURE = frozenset(
    {
        *(
            "aiohttp",
            "aiohappyeyeballs",
            "asyncio",
            "grpc",
            "grpc_health",
            "grpc_reflection",
            "grpc_status",
            "httptools",
        ),
        *("aiosqlite", "alembic", "limits", "obstore", "psycopg", "redis", "sqlalchemy"),
        *("logging", "opentelemetry", "prometheus_client", "structlog"),
        *("concurrent", "multiprocessing", "selectors", "signal", "socket", "ssl", "subprocess", "threading", "uvloop"),
        *("os", "random", "secrets", "time", "uuid"),
    }
)
"""Libraries with which a module does input or output, or reads a clock, chance or the environment."""
OPENING = frozenset({"open", "read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "unlink"})
"""Methods of paths that open or change files; `open` is also a function."""
SHIPPED = frozenset({"umg_grpc.knowledge.data_files", "umg_grpc.v1.comments"})


def build() -> grimp.ImportGraph:
    """Return the graph of all imports, also those in functions and for types."""
    return grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)


def measures(graph: grimp.ImportGraph) -> Iterator[Measure]:
    """Yield the measures of the import graph."""
    modules = sorted(module for module in graph.modules if top(module) in PACKAGES)
    loose = [module for module in modules if _is_loose(module)]
    yield Measure("modules at the top of a package", len(loose), 0, places=loose)
    outside = list(without_layer(modules))
    yield Measure("modules and packages in no import layer", len(outside), 0, places=outside)
    rooms = {room(module) for module in modules}
    yield Measure("rooms", len(rooms), 22, places=rooms)
    between = arrows(graph, modules)
    yield Measure("arrows between rooms", len(between), 99, places=[f"{one} -> {other}" for one, other in between])
    found = circles(graph, (module for module in modules if top(module) in PRODUCT))
    yield Measure("circles of modules", len(found), 0, places=[" <-> ".join(each) for each in found])
    texts = {module: path(module).read_text(encoding="utf-8") for module in modules if top(module) in PRODUCT}
    yield Measure("pure core", round(pure_share(graph, texts), 1), 55, "at least", unit=" %")


def top(module: str) -> str:
    """Return the package of the highest level."""
    return module.partition(".")[0]


def room(module: str) -> str:
    """Return the room of a module."""
    return ".".join(module.split(".")[:2]) if top(module) == "umg_grpc" else top(module)


def arrows(graph: grimp.ImportGraph, modules: Iterable[str]) -> set[tuple[str, str]]:
    """Return the pairs of rooms of which the first imports the second."""
    return {
        (room(module), room(target))
        for module in modules
        for target in graph.find_modules_directly_imported_by(module)
        if top(target) in PACKAGES and room(module) != room(target)
    }


def circles(graph: grimp.ImportGraph, modules: Iterable[str]) -> list[list[str]]:
    """Return the sets of modules that import each other, directly or by others, also in functions or for types."""
    loops = {module: graph.find_upstream_modules(module) & graph.find_downstream_modules(module) for module in modules}
    return sorted(map(sorted, {frozenset({module, *loop}) for module, loop in loops.items() if loop}))


def without_layer(modules: Iterable[str]) -> Iterator[str]:
    """Yield the modules and packages directly in the product that no exhaustive contract names."""
    children = {".".join(module.split(".")[:2]) for module in modules if top(module) in PRODUCT and "." in module}
    layered = set(_layered(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]))
    yield from children - layered


def pure_share(graph: grimp.ImportGraph, texts: Mapping[str, str]) -> float:
    """Return the lines of pure modules in percent. `texts`: the code of each module that counts."""
    impure = {name for name, text in texts.items() if _imports_impure(graph, name) or _opens_files(name, text)}
    for module in tuple(impure):
        impure |= graph.find_downstream_modules(module)
    lines = {module: text.count("\n") for module, text in texts.items()}
    return 100 * sum(count for module, count in lines.items() if module not in impure) / sum(lines.values())


def path(module: str) -> Path:
    """Return the file of a module of the product."""
    place = ROOT.joinpath(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _is_loose(module: str) -> bool:
    package, _, name = module.partition(".")
    if package not in PRODUCT or not name or "." in name or path(module).name == "__init__.py":
        return False
    return not (name == "__main__" or (package == "http_facade" and name in TOP_OF_FACADE))


def _layered(contracts: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for contract in contracts:
        if contract["type"] == "layers" and contract.get("exhaustive"):
            for container in contract["containers"]:
                for layer in contract["layers"]:
                    yield from (f"{container}.{name.strip()}" for name in layer.replace(":", "|").split("|"))


def _imports_impure(graph: grimp.ImportGraph, module: str) -> bool:
    return any(top(target) in IMPURE for target in graph.find_modules_directly_imported_by(module))


def _opens_files(module: str, text: str) -> bool:
    if module in SHIPPED:
        return False
    called = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return any(
        (isinstance(name, ast.Name) and name.id == "open") or (isinstance(name, ast.Attribute) and name.attr in OPENING)
        for name in called
    )
