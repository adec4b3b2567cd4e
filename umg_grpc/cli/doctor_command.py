"""Command `umg doctor`: checks whether a gateway can run on this machine with its database, Redis, ports and files."""

import asyncio
import os
import platform
import resource
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from umg_grpc.cli.health_command import connection_to
from umg_grpc.cli.text_tables import Column, Fit, Form, print_table
from umg_grpc.config import Address, Config
from umg_grpc.process import port_checks
from umg_grpc.process.interpreter_optimization_check import BUILD_REMEDY, missing_optimizations
from umg_grpc.process.open_file_limit import LEAST_FILES, MAX_FILES, OTHER_FILES, max_clients
from umg_grpc.store.database_constants import READY_SECONDS

CHECK_COLUMNS = (
    Column("state"),
    Column("check"),
    Column("found", fit=Fit.FOLDED),
    Column("remedy", fit=Fit.FOLDED),
)
WAIT_SECONDS = 3.0
MAX_CLOCK_SECONDS = 0.5
MEMORY_BYTES, LOCAL_MEMORY_BYTES = 512 << 20, 1200 << 20
"""Least free memory to serve with; with the local text model."""
RECOMMENDED_CONNECTIONS = 8192
"""Connections for which the limit of open files should suffice, where the config does not limit them."""
DISK_BYTES = 64 << 20
"""Least free space on the disk of the data directory."""
ALERT_REMEDY = "check `alerts.receivers` in the config; `umg alerts test NAME` sends a test"
MEMORY_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current")


class CheckState(StrEnum):
    """Result of a check as a class: ok, a warning, or a failure. Only a failure prevents that a gateway runs."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """Result of one check of `umg doctor`: its name and state, the findings, and the remedy ("" if none is needed)."""

    name: str
    state: CheckState
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class Machine:
    """Gateway that is checked before it is started: its config, data directory and addresses on this machine."""

    config: Config
    data: Path
    http: Address
    grpc: Address

    @property
    def has_local_model(self) -> bool:
        """Whether the config has a model that runs on this machine."""
        return any("local" in channel.protocols for channel in self.config.channels)


async def examine(machine: Machine, form: Form) -> int:
    """Run all checks, and print a table of them. Return the exit code: 1 if a check failed."""
    checks = [check async for check in _checks(machine)]
    print_checks(checks, form)
    return 1 if any(check.state is CheckState.FAIL for check in checks) else 0


def print_checks(checks: Sequence[Check], form: Form) -> None:
    """Print the results of checks in a form."""
    rows = ((check.state, check.name, check.found, check.remedy) for check in checks)
    print_table(CHECK_COLUMNS, rows, form, map(asdict, checks))


async def _checks(machine: Machine) -> AsyncIterator[Check]:
    yield interpreter()
    yield event_loop()
    for address, purpose in ((machine.http, port_checks.HTTP_PURPOSE), (machine.grpc, port_checks.GRPC_PURPOSE)):
        yield await asyncio.to_thread(port, address, machine, purpose)
    yield data_folder(machine.data)
    for check in await database(machine):
        yield check
    if machine.config.redis is not None:
        yield await redis(machine.config.redis)
    for check in local_models(machine):
        yield check
    for check in await alert_receivers(machine.config):
        yield check
    connections = machine.config.overload.connections or RECOMMENDED_CONNECTIONS
    yield open_files(connections, *resource.getrlimit(resource.RLIMIT_NOFILE))
    yield memory(LOCAL_MEMORY_BYTES if machine.has_local_model else MEMORY_BYTES, free_memory())


def interpreter() -> Check:
    """Check whether the Python interpreter was built with optimizations."""
    name = f"{platform.python_implementation()} {platform.python_version()}"
    if missing := missing_optimizations():
        found = f"{name} was built without {' and '.join(missing)}, which makes calls up to 1.9 times slower"
        return Check("python", CheckState.WARN, found, BUILD_REMEDY)
    return Check("python", CheckState.OK, f"{name}, built with optimizations")


def event_loop() -> Check:
    """Check that uvloop can be imported."""
    if find_spec("uvloop") is None:
        return Check("event loop", CheckState.FAIL, "uvloop is not installed", "`pip install uvloop`")
    return Check("event loop", CheckState.OK, "uvloop")


def port(address: Address, machine: Machine, purpose: str) -> Check:
    """Check that the address is free, or that the gateway itself listens there. `purpose`: use of the port."""
    name = f"{purpose} port"
    if address.port == 0:
        return Check(name, CheckState.OK, "any free one")
    try:
        port_checks.check_free(address, purpose)
    except OSError as error:
        if _is_gateway(machine.http, tls=machine.config.tls is not None):
            return Check(
                name, CheckState.OK, f"{address} is that of the gateway that runs{port_checks.holder(address)}"
            )
        found, _, remedy = str(error).partition("; ")
        return Check(name, CheckState.FAIL, found, remedy)
    return Check(name, CheckState.OK, f"{address} is free")


def _is_gateway(address: Address, *, tls: bool) -> bool:
    connection = connection_to(address, tls=tls)
    try:
        connection.request("GET", "/readyz")
        return b'"reasons"' in connection.getresponse().read()
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def data_folder(data: Path) -> Check:
    """Check that the data directory is writable, or that a start can create it, and that its disk has space."""
    existing = data
    while not existing.exists() and existing != existing.parent:
        existing = existing.absolute().parent
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".umg-doctor-"):
            pass
    except OSError as error:
        found = f"{existing.absolute()} cannot be written: {error.strerror}"
        return Check("data", CheckState.FAIL, found, "change its owner or mode, or name another folder with --data")
    disk = os.statvfs(existing)
    if disk.f_blocks and (free := disk.f_bavail * disk.f_frsize) < DISK_BYTES:
        found = f"the disk of {existing.absolute()} has {free >> 20} MiB free, {DISK_BYTES >> 20} MiB are recommended"
        return Check("data", CheckState.WARN, found, "make room: with less than 4 MiB a process is not ready")
    state = "can be written" if existing == data else "is created by the first start"
    return Check("data", CheckState.OK, f"{data.absolute()} {state}")


async def database(machine: Machine) -> list[Check]:
    """Check that the database can be reached, has the expected schema, and has the right time."""
    from umg_grpc.store import StoreError
    from umg_grpc.store.database_state import database_state
    from umg_grpc.store.schema_version import NEWEST_MIGRATION

    try:
        state = await database_state(machine.config.database, machine.data)
    except StoreError as error:
        return [Check("database", CheckState.FAIL, str(error), "check `database` in the config, and the server")]
    clock = abs(state.skew_seconds)
    if not state.schema:
        checks = [Check("database", CheckState.OK, "reachable; the first start creates the tables")]
    elif state.schema == NEWEST_MIGRATION:
        checks = [Check("database", CheckState.OK, f"reachable, schema {NEWEST_MIGRATION}")]
    elif state.schema < NEWEST_MIGRATION:
        found = f"schema {state.schema}, this version has {NEWEST_MIGRATION}"
        checks = [Check("database", CheckState.WARN, found, "the next start migrates it; make a backup before")]
    else:
        found = f"schema {state.schema} is of a newer version, this one has {NEWEST_MIGRATION}"
        checks = [Check("database", CheckState.FAIL, found, "start the newer version")]
    if clock > MAX_CLOCK_SECONDS:
        grade = CheckState.FAIL if clock > READY_SECONDS else CheckState.WARN
        found = f"{clock:.1f} s from that of the database"
        return [*checks, Check("clock", grade, found, "synchronize both by NTP (chrony, systemd-timesyncd)")]
    return [*checks, Check("clock", CheckState.OK, f"{clock:.1f} s from that of the database")]


async def redis(url: str) -> Check:
    """Check that the Redis server at `url` answers."""
    from redis.asyncio import Redis, RedisError

    client = Redis.from_url(url, socket_timeout=WAIT_SECONDS, socket_connect_timeout=WAIT_SECONDS)
    try:
        await client.ping()
    except (RedisError, OSError) as error:
        remedy = "check `redis` in the config, and the server; until then each process counts limits for itself"
        return Check("redis", CheckState.WARN, f"no response: {error}", remedy)
    finally:
        await client.aclose()
    return Check("redis", CheckState.OK, "reachable")


async def alert_receivers(config: Config) -> list[Check]:
    """Check that a connection to each receiver of alerts can be opened; nothing is sent."""
    from umg_grpc.config.alert_settings import EmailReceiver

    checks = list[Check]()
    for name, receiver in config.alerts.receivers.items():
        if isinstance(receiver, EmailReceiver):
            host, port, via = receiver.host, receiver.port, None
        else:
            via = config.proxies.of_url(receiver.url)
            parts = urlsplit(receiver.url if via is None else via.url)
            host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        place = f"{name}: {host}:{port}" if via is None else f"{name}: the proxy {host}:{port}"
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                _, writer = await asyncio.open_connection(host, port)
            writer.close()
        except OSError as error:  # TimeoutError is one
            reason = error.strerror or "no response in time"
            checks.append(Check("alerts", CheckState.WARN, f"{place} cannot be reached: {reason}", ALERT_REMEDY))
        else:
            checks.append(Check("alerts", CheckState.OK, f"{place} accepts connections"))
    if checks and not config.usage.enabled:
        found = "the rules of usage find nothing with `usage: {enabled: false}`"
        checks.append(Check("alerts", CheckState.WARN, found, "enable it, or disable these rules"))
    return checks


def local_models(machine: Machine) -> Iterator[Check]:
    """Check the files of the local models that the config serves."""
    from umg_grpc.process.local_model_check import local_model_problems

    for name, reason in local_model_problems(machine.config).items():
        if reason is None:
            yield Check("model", CheckState.OK, f"{name} is installed")
        else:
            yield Check("model", CheckState.WARN, f"{name} is not served", reason)


def open_files(connections: int, soft: int, hard: int) -> Check:
    """Check that the limit of open files, raised to the hard one as at a start, suffices for `connections` clients."""
    limit = MAX_FILES if hard == resource.RLIM_INFINITY else max(soft, hard)
    remedy = "raise it: `ulimit -Hn`, `LimitNOFILE=` of systemd, `--ulimit nofile=` of Docker"
    if limit < LEAST_FILES:
        return Check("open files", CheckState.FAIL, f"limit {limit}, at least {LEAST_FILES} are needed", remedy)
    if max_clients(limit) < connections:
        found = f"limit {limit} is enough for {max_clients(limit)} of {connections} connections"
        return Check("open files", CheckState.WARN, found, f"{remedy} to {2 * connections + OTHER_FILES}")
    return Check("open files", CheckState.OK, f"limit {limit}")


def free_memory() -> int | None:
    """Return the free memory in bytes of the machine, or of the container if that is limited; None if unknown."""
    try:
        pages: int | None = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):  # counts the caches, which are freed on demand
                pages = int(line.split()[1]) << 10
    except (OSError, ValueError):
        pages = None
    try:
        limit, used = (Path(name).read_text(encoding="ascii").strip() for name in MEMORY_FILES)
        return pages if limit == "max" else min(int(limit) - int(used), int(limit) if pages is None else pages)
    except (OSError, ValueError):
        return pages


def memory(needed: int, free: int | None) -> Check:
    """Check that the free memory suffices for the models that run here. Sizes in bytes; `free`: None if unknown."""
    if free is None:
        return Check("memory", CheckState.OK, "unknown on this system")
    found = f"{free >> 20} MiB free"
    if free < needed:
        return Check("memory", CheckState.WARN, f"{found}, {needed >> 20} MiB are recommended", "add memory")
    return Check("memory", CheckState.OK, found)
