"""Text of the AI SDK's packages for vendors of images and videos, read in their archives: none is installed or run."""

import base64
import hashlib
import re
import tarfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.world.sdk.node_runner import npm
from tests.world.sdk.runner import packages

CONFIG = Path(__file__).parents[2] / "world" / "sdk" / "node" / ".npmrc"


class Archive(NamedTuple):
    """Archive of a package in the registry."""

    name: str
    version: str
    integrity: str
    """SHA-512 of the archive in base64, as the registry states it."""

    def text(self, member: str) -> str:
        """Return the text of a file in the package. Raise RuntimeError if the archive cannot be downloaded."""
        return _text(self, member)


BYTEDANCE = Archive(
    "@ai-sdk/bytedance",
    "1.0.29",
    "rBRNNuu+JojVjjulswfWDRIvJuvTj845qWLas1SZvEUmMG3kIcFSzuwzjspYhg8bhsgsgDkj5o2notl3Rmf1Rg==",
)
ALIBABA = Archive(
    "@ai-sdk/alibaba",
    "1.0.61",
    "2kdoDEf0AiWMZ9KyHWuQRF0x+pY/gJ+C/zY73TikIEZB2oKMA+AwpaSSldNK3d6I8IvZu6MgAX2LggXVddRHpA==",
)
XAI = Archive(
    "@ai-sdk/xai",
    "3.0.138",
    "0uLgqq06G/CbDqe4PcGPWprfhQB63sf0h+aZy+9sLypqQKyO05F213F2k2ibPM/8akeO9PD2ztgE7CuWUaDMGA==",
)


def literals(text: str, before: str) -> list[str]:
    """Return the quoted texts in the first brackets after `before`."""
    found = text[text.index(before) + len(before) :]
    return re.findall(r"""["']([^"']+)["']""", found[: found.index("]")])


def sizes(text: str, before: str) -> dict[str, str]:
    """Return the sizes in the first object after `before`, each with its resolution in lower case."""
    found = text[text.index(before) :]
    pairs = re.findall(r"""["'](\d+x\d+)["']: ["'](\w+)["']""", found[: found.index("}")])
    return {size: resolution.lower() for size, resolution in pairs}


@cache
def _text(archive: Archive, member: str) -> str:
    folder = packages("umg-npm-archives", "".join(archive).encode(), lambda target: _download(archive, target))
    (path,) = folder.glob("*.tgz")
    with tarfile.open(path) as opened:
        file = opened.extractfile(f"package/{member}")
        assert file is not None
        return file.read().decode()


def _download(archive: Archive, target: Path) -> None:
    (target / ".npmrc").write_bytes(CONFIG.read_bytes())
    npm(target, "pack", f"{archive.name}@{archive.version}", "--pack-destination", str(target))
    (path,) = target.glob("*.tgz")
    digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
    if digest != archive.integrity:
        raise RuntimeError(f"the archive of {archive.name} has another hash: {digest}")
