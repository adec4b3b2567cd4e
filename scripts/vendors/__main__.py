"""Command of `make vendors`: print news in the newest packages of vendors that the gateway does not handle.

With `--installed` it compares the SDKs of the virtualenv instead, without network.
"""

import argparse
import sys
import sysconfig
import zipfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from scripts.vendors import public_data, sdk_types, versions
from scripts.vendors.downloads import (
    DownloadError,
    newest_of_npm,
    newest_of_pypi,
    newest_wheel,
    npm_sources,
    wheel_version,
)
from scripts.vendors.findings import Finding, as_text, ignored_rows, unhandled
from scripts.vendors.python_types import PackageTypes, of_folder, of_wheel
from tests.world.agents.versions import NPM, PYPI

Step = Callable[[], Iterator[Finding]]


class Report(Struct, frozen=True):
    """Content of `--json`."""

    findings: list[Finding]
    listed: int
    """Number of findings that `ignored.json` lists."""
    failed: list[str]
    """Sources that could not be read, with the reasons."""


def main(given: Sequence[str] | None = None) -> int:
    """Run the command. Return the exit status, 0 also with findings. `given`: arguments in place of the process's."""
    arguments = _arguments(given)
    found, failed = list[Finding](), list[str]()
    for name, step in installed_steps() if arguments.installed else newest_steps():
        print(f"reading {name}", file=sys.stderr, flush=True)
        try:
            found.extend(step())
        except (DownloadError, KeyError, zipfile.BadZipFile) as error:
            failed.append(f"{name}: {error}")
    new = unhandled(found, ignored_rows())
    report = Report(new, len(set(found)) - len(new), failed)
    if arguments.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
        return 0
    print(as_text(new))
    print(f"\n{len(new)} new, {report.listed} listed in scripts/vendors/ignored.json")
    for line in failed:
        print(f"not read: {line}")
    return 0


def installed_steps() -> Iterator[tuple[str, Step]]:
    """Yield the comparisons with the SDKs of the virtualenv, by their names."""
    folder = Path(sysconfig.get_path("purelib"))
    for package, top in sdk_types.PACKAGES.items():
        if (folder / top.replace(".", "/")).is_dir():
            yield package, lambda package=package: iter(_installed(package))


@cache
def _installed(package: str) -> tuple[Finding, ...]:
    """Return the findings in a package of the virtualenv, whose types are read once: it takes seconds."""
    sources = of_folder(Path(sysconfig.get_path("purelib")), sdk_types.PACKAGES[package])
    return tuple(sdk_types.compared(package, PackageTypes(sources)))


def newest_steps() -> Iterator[tuple[str, Step]]:
    """Yield the comparisons with the newest packages of the registries, by their names."""
    for package in sdk_types.PACKAGES:
        yield package, lambda package=package: _sdk(package)
    for package in public_data.MEMBERS:
        yield package, lambda package=package: _data(package)
    pinned = versions.pinned_of_node()
    for package in public_data.AI_SDK:
        yield package, lambda package=package: _ai_sdk(package, pinned.get(package, ""))
    for package in NPM:
        yield package, lambda package=package: versions.of_agent(package, newest_of_npm(package))
    for package in PYPI:
        yield package, lambda package=package: versions.of_agent(package, newest_of_pypi(package))


def _sdk(package: str) -> Iterator[Finding]:
    wheel = newest_wheel(package)
    yield from versions.of_sdk(package, versions.pinned_of_pypi(package), wheel_version(wheel))
    yield from sdk_types.compared(package, PackageTypes(of_wheel(wheel, sdk_types.PACKAGES[package])))


def _data(package: str) -> Iterator[Finding]:
    with zipfile.ZipFile(newest_wheel(package)) as archive:
        data = archive.read(public_data.MEMBERS[package])
    today = datetime.now(UTC).date()
    if package == public_data.COST_MAP:
        yield from public_data.of_cost_map(data, today)
    else:
        yield from public_data.of_prices(data.decode(), today)


def _ai_sdk(package: str, pinned: str) -> Iterator[Finding]:
    newest = newest_of_npm(package)
    yield from versions.of_sdk(package, pinned, newest)
    yield from public_data.of_ai_sdk(package, npm_sources(package, newest))


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.vendors", description="Print news of the vendors that are not handled."
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--installed", action="store_true", help="compare the SDKs of the virtualenv, without network")
    return parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(main())
