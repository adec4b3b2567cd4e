"""Blob store, in a folder and on an S3 server over HTTP: files appear as a whole, are read in parts, and end in time."""

import asyncio
import hashlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import obstore
import pytest
from obstore.store import from_url

from tests.support.polling import pause
from tests.support.proxies import NOWHERE
from tests.support.s3_server import ENVIRONMENT, S3Server, s3_server
from tests.support.store_fixtures import WrongClock
from umg_grpc.base.errors import UmgError
from umg_grpc.store import StoreError, blob_bucket
from umg_grpc.store.blob_backend_selection import blob_place
from umg_grpc.store.blob_store import MEDIA_TYPES, PART_BYTES, SERVED_BYTES, SPOOL_BYTES, STORED_BYTES, Blob, BlobStore
from umg_grpc.store.database_time import GivenClock
from umg_grpc.v1 import pb

DAY, GIB = 86400, 1 << 30


@dataclass
class Time:
    now: float = field(default_factory=lambda: float(int(time.time())))

    def utc(self) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)


@dataclass
class Opened:
    """One place, and stores that use it, as several processes do."""

    url: str | None
    endpoint: str | None
    folder: Path
    time: Time = field(default_factory=Time)
    counted: list[tuple[str, int]] = field(default_factory=list)

    def store(self, *, ttl: float = DAY, max_bytes: int = GIB) -> BlobStore:
        place = blob_place(self.url, self.endpoint, self.folder)
        return BlobStore(
            place,
            ttl=ttl,
            max_bytes=max_bytes,
            clock=GivenClock(self.time.utc),
            count=lambda *each: self.counted.append(each),
        )

    def files(self) -> list[Path]:
        """Return the files of the folder that are not blobs."""
        return [path for path in self.folder.rglob("*") if path.is_file() and "partial" in path.parts]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(params=["folder", "s3"])
def opened(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    if request.param == "folder":
        return Opened(None, None, tmp_path)
    server: S3Server = request.getfixturevalue("s3")
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(blob_bucket, "TIMEOUT_SECONDS", 120)  # the server may be slow on a busy machine
    bucket = server.create_bucket(f"bucket-{os.urandom(6).hex()}")
    return Opened(f"{bucket}/results/of-tests", server.endpoint, tmp_path)


async def content(store: BlobStore, blob: Blob, start: int = 0, end: int | None = None) -> bytes:
    async with aclosing(store.read(blob, start, end)) as parts:
        return b"".join([part async for part in parts])


async def missing(store: BlobStore, blob_id: str) -> bool:
    try:
        await store.head(blob_id)
    except UmgError as error:
        if error.reason != pb.ERROR_REASON_OBJECT_NOT_FOUND:
            raise
        return True
    return False


async def pieces(*parts: bytes) -> AsyncGenerator[bytes, None]:
    for part in parts:
        yield part


async def test_a_file_is_stored_with_its_properties(opened: Opened) -> None:
    store, data = opened.store(), os.urandom(100_000)
    blob = await store.put(data, "image/png")
    assert (blob.size, blob.mime_type, blob.extension) == (100_000, "image/png", "png")
    assert blob.etag == hashlib.sha256(data).hexdigest()
    assert blob.create_time == datetime.fromtimestamp(opened.time.now, UTC)
    assert await opened.store().head(blob.id) == blob
    assert await content(opened.store(), blob) == data
    assert not opened.files()
    assert opened.counted == [(STORED_BYTES, 100_000), *((SERVED_BYTES, n) for n in (100_000,))]


async def test_storage_on_this_machine_has_no_proxy(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NOWHERE.items():
        monkeypatch.setenv(name, value)
    store = opened.store()
    assert await content(store, await store.put(b"picture", "image/png")) == b"picture"


@pytest.mark.parametrize("size", [0, 1, SPOOL_BYTES - 1, SPOOL_BYTES, 3 * SPOOL_BYTES + 5])
async def test_a_stream_of_any_length_is_stored(opened: Opened, size: int) -> None:
    store, data = opened.store(), os.urandom(size)
    parts = [data[at : at + 70_000] for at in range(0, size, 70_000)]
    blob = await store.put_stream(pieces(*parts), "video/mp4")
    assert (blob.size, blob.etag) == (size, hashlib.sha256(data).hexdigest())
    assert await content(store, blob) == data


RANGES = [(0, 0), (0, 1), (5, 10), (999_999, 1_000_000), (PART_BYTES - 1, 3 * PART_BYTES + 1), (0, None), (999_000, 2_000_000)]  # fmt: skip


@pytest.mark.parametrize(("start", "end"), RANGES)
async def test_a_part_is_read(opened: Opened, start: int, end: int | None) -> None:
    store, data = opened.store(), os.urandom(1_000_000)
    blob = await store.put(data, "video/mp4")
    async with aclosing(store.read(blob, start, end)) as parts:
        found = [part async for part in parts]
    assert b"".join(found) == data[start:end]
    assert all(0 < len(part) <= PART_BYTES for part in found)


@pytest.mark.parametrize(("given", "stored"), [*((each, each) for each in MEDIA_TYPES.values()), ("text/html", "application/octet-stream"), ("image/svg+xml", "application/octet-stream"), ("", "application/octet-stream")])  # fmt: skip
async def test_only_media_types_without_scripts_are_stored(given: str, stored: str, tmp_path: Path) -> None:
    assert (await Opened(None, None, tmp_path).store().put(b"x", given)).mime_type == stored


async def test_a_deleted_file_does_not_exist(opened: Opened) -> None:
    store = opened.store()
    blob = await store.put(b"hello", "image/png")
    await store.delete(blob.id)
    await opened.store().delete(blob.id)  # as another process may do
    assert await missing(store, blob.id)
    with pytest.raises(UmgError) as caught:
        await content(store, blob)
    assert caught.value.reason == pb.ERROR_REASON_OBJECT_NOT_FOUND


@pytest.mark.parametrize("name", ["", "x", "../umg.db", "/etc/passwd", "partial", f"{'0' * 20}-{'A' * 43}.exe", f"{'0' * 20}-{'A' * 43}.png\n"])  # fmt: skip
async def test_an_id_that_is_none_is_not_looked_up(name: str, tmp_path: Path) -> None:
    (tmp_path / "umg.db").write_bytes(b"secret")
    assert await missing(Opened(None, None, tmp_path).store(), name)


async def test_a_stream_that_fails_leaves_nothing(opened: Opened) -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield b"x" * (2 * SPOOL_BYTES)
        raise ConnectionError("cut")

    store = opened.store()
    with pytest.raises(ConnectionError):
        await store.put_stream(failing(), "video/mp4")
    with pytest.raises(UmgError, match="larger than 1 MiB"):
        await store.put_stream(pieces(*[b"x" * 1000] * 2000), "video/mp4", max_bytes=1 << 20)
    assert not opened.files()
    await store.sweep()
    assert store.size_bytes == 0


async def test_a_call_that_is_cancelled_leaves_nothing(opened: Opened) -> None:
    store, begun = opened.store(), asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield b"x"
        begun.set()
        await asyncio.get_running_loop().create_future()

    call = asyncio.create_task(store.put_stream(endless(), "video/mp4"))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not opened.files()


async def test_files_end_after_their_time(opened: Opened) -> None:
    store = opened.store(ttl=100)
    old = await store.put(b"old", "image/png")
    opened.time.now += 60
    new = await store.put(b"new", "image/png")
    await store.sweep()
    assert not await missing(store, old.id)
    opened.time.now += 60
    await opened.store(ttl=100).sweep()
    assert (await missing(store, old.id), await missing(store, new.id)) == (True, False)


async def test_the_oldest_files_end_when_there_are_too_many(opened: Opened) -> None:
    store = opened.store(max_bytes=2500)
    stored = []
    for _ in range(5):
        stored.append(await store.put(os.urandom(1000), "image/png"))
        opened.time.now += 1
    await asyncio.gather(*(opened.store(max_bytes=2500).sweep() for _ in range(3)))  # three processes at once
    assert [await missing(store, blob.id) for blob in stored] == [True, True, True, False, False]
    await store.sweep()
    assert store.size_bytes == 2000


async def test_a_store_that_is_full_sweeps_at_once(opened: Opened) -> None:
    store = opened.store(max_bytes=2500)
    store.start()
    first = await store.put(os.urandom(1000), "image/png")
    opened.time.now += 1
    for _ in range(2):
        await store.put(os.urandom(1000), "image/png")
    async with asyncio.timeout(60):
        while not await missing(store, first.id):
            await pause()
    await store.aclose()


async def test_files_that_are_stored_during_a_sweep_count(opened: Opened) -> None:
    store = opened.store(max_bytes=2500)
    sweep = asyncio.create_task(store.sweep())
    await asyncio.sleep(0)  # the sweep has begun, and lists no file
    await store.put(os.urandom(1000), "image/png")
    await sweep
    assert store.size_bytes >= 1000  # a file that the sweep lists may count twice until the next sweep


async def test_a_sweep_deletes_nothing_that_is_no_blob(opened: Opened) -> None:
    store = opened.store(ttl=1)
    await store.put(b"x", "image/png")
    if opened.url is None:
        (opened.folder / "blobs" / "notes.txt").write_text("mine")
    else:
        bucket = from_url(opened.url, config={"endpoint": opened.endpoint or ""}, client_options={"allow_http": True})
        await obstore.put_async(bucket, "notes.txt", b"mine")
    opened.time.now += 1000
    await store.sweep()
    names = [entry.name async for entry in blob_place(opened.url, opened.endpoint, opened.folder).entries()]
    assert names == ["notes.txt"]


async def test_no_file_is_deleted_while_the_clock_is_wrong(tmp_path: Path) -> None:
    opened = Opened(None, None, tmp_path)
    blob = await opened.store().put(b"x", "image/png")
    opened.time.now += 2 * DAY
    place = blob_place(None, None, tmp_path)
    await BlobStore(place, ttl=DAY, max_bytes=GIB, clock=WrongClock(opened.time.utc)).sweep()
    assert await opened.store().head(blob.id) == blob
    await opened.store().sweep()
    with pytest.raises(UmgError):
        await opened.store().head(blob.id)


async def test_the_file_of_a_killed_process_is_removed_after_a_day(opened: Opened) -> None:
    store = opened.store()
    await store.put(b"x", "image/png")
    for name, age in (("old", DAY + 60), ("new", 60)):
        path = opened.folder / "blobs" / "partial" / name
        path.write_bytes(b"half")
        os.utime(path, (opened.time.now - age,) * 2)
    await store.sweep()
    assert [path.name for path in opened.files()] == ["new"]


async def test_many_processes_store_at_once(opened: Opened) -> None:
    stores = [opened.store() for _ in range(4)]
    datas = [os.urandom(10_000) for _ in range(20)]
    blobs = await asyncio.gather(*(stores[n % 4].put(data, "image/png") for n, data in enumerate(datas)))
    assert len({blob.id for blob in blobs}) == 20
    assert await asyncio.gather(*(content(stores[n % 3], blob) for n, blob in enumerate(blobs))) == datas
    twice = await asyncio.gather(*(stores[n].put(b"same", "image/png") for n in range(2)))
    assert twice[0].id != twice[1].id  # each has its own time to live


async def test_the_media_type_is_that_of_the_object_too(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    bucket = s3.create_bucket("with-media-types")
    blob = await Opened(bucket, s3.endpoint, tmp_path).store().put(b"x", "image/webp")
    reader = from_url(bucket, config={"endpoint": s3.endpoint}, client_options={"allow_http": True})
    assert (await obstore.get_async(reader, blob.id)).attributes["Content-Type"] == "image/webp"


async def test_200_mb_take_little_memory(opened: Opened) -> None:
    part = os.urandom(1 << 20)
    store = opened.store()

    async def stream() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield part

    await store.put(part, "video/mp4")  # opens the connections, and imports modules
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    blob = await store.put_stream(stream(), "video/mp4")
    received = 0
    size = blob.size if opened.url is None else 20 << 20  # the test's server reads all of an object for each part
    async with aclosing(store.read(blob, end=size)) as parts:
        async for each in parts:
            received += len(each)
    assert (blob.size, received) == (200 << 20, size)
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert growth < 80 << 10  # parts in flight, and the first of their buffers
    await store.delete(blob.id)


async def test_a_store_that_cannot_be_used_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file where the folder should be")
    with pytest.raises(UmgError) as caught:
        await Opened(None, None, tmp_path).store().put(b"x", "image/png")
    assert caught.value.reason == pb.ERROR_REASON_UNAVAILABLE
    assert "blobs" in caught.value.cause
    assert "blobs" not in caught.value.message


async def test_a_bucket_that_does_not_exist_is_unavailable(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    store = Opened("s3://no-such-bucket", s3.endpoint, tmp_path).store()
    with pytest.raises(UmgError) as caught:
        await store.put(b"x", "image/png")
    assert caught.value.reason == pb.ERROR_REASON_UNAVAILABLE
    with pytest.raises(OSError, match=r"NoSuchBucket|404|NotFound|no such"):
        await store.sweep()


@pytest.mark.parametrize("url", ["ftp://host/x", "s3://", "file:///tmp/x", "memory:///", "x"])
def test_a_url_that_is_no_bucket_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"^blobs\.url: "):
        blob_place(url, None, tmp_path)


def test_other_clouds_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    for url in ("gs://bucket/prefix", "az://container/prefix"):
        blob_place(url, None, tmp_path)


def test_a_folder_needs_no_package_of_clouds(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['obstore'] = None\n"
        "from pathlib import Path\nfrom umg_grpc.store.blob_backend_selection import blob_place\n"
        "blob_place(None, None, Path('.'))\nassert not [name for name in sys.modules if name.startswith('obstore.')]\n"
        "try: blob_place('s3://b', None, Path('.'))\nexcept Exception as error: print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    assert out == "blobs.url needs the package obstore: pip install 'unified-model-gateway[blobs]'\n"
