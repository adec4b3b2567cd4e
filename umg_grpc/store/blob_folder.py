"""Storage of result files in a folder, which several processes of one machine can share."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from pathlib import Path

from umg_grpc.store.blob_store import PART_BYTES, BlobEntry

SPOOL_FOLDER = "partial"


class BlobFolder:
    """Folder with one file for each result file; implements `BlobPlace`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def spool(self) -> Path:
        return self._folder / SPOOL_FOLDER

    async def put(self, name: str, file: Path, mime_type: str) -> None:
        await asyncio.to_thread(file.rename, self._folder / name)

    async def size(self, name: str) -> int:
        return (await asyncio.to_thread((self._folder / name).stat)).st_size

    async def read(self, name: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        descriptor = await asyncio.to_thread(os.open, self._folder / name, os.O_RDONLY)
        try:
            while start < end:
                part = await asyncio.to_thread(os.pread, descriptor, min(PART_BYTES, end - start), start)
                if not part:
                    raise OSError(f"{name} is shorter than it was")
                start += len(part)
                yield part
        finally:
            os.close(descriptor)

    async def delete(self, names: Collection[str]) -> None:
        def delete() -> None:
            for name in names:
                (self._folder / name).unlink(missing_ok=True)

        await asyncio.to_thread(delete)

    async def entries(self) -> AsyncIterator[BlobEntry]:
        for entry in await asyncio.to_thread(self._scan):
            yield entry

    def _scan(self) -> list[BlobEntry]:
        found = list[BlobEntry]()
        if self._folder.is_dir():
            with os.scandir(self._folder) as files:
                for file in files:
                    try:
                        if file.is_file():
                            found.append(BlobEntry(file.name, file.stat().st_size))
                    except FileNotFoundError:  # another process deleted it meanwhile
                        continue
        return found
