"""Config of a process compared with its file: settings in force, changes that wait, and problems of the last reload."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from umg_grpc.config import Config, ConfigError
from umg_grpc.config.config_comparison import changes
from umg_grpc.config.config_hash import config_hash
from umg_grpc.config.settings_in_force import Setting, SettingSource, settings_in_force
from umg_grpc.v1 import pb

MAX_PROBLEMS = 100
MAX_PROBLEM_CHARACTERS = 4000


class ConfigState:
    """Config of a process, from its start on."""

    def __init__(self, config: Config, environment: Mapping[str, str], now: Callable[[], float]) -> None:
        """Create the state of the config at the start. `now`: returns the Unix time."""
        self._started = self._current = config
        self._environment, self._now = environment, now
        self._load_time = datetime.fromtimestamp(now(), UTC)
        self._failure_time: datetime | None = None
        self._problems: list[pb.ConfigProblem] = []
        self._shown: tuple[Config, Sequence[Setting]] | None = None
        self.flags: Mapping[str, str] = {}
        """Flags of the command line, with their values."""
        self.read_text: Callable[[], str] | None = None
        """Reads the file of the config; None for a config without one."""
        self.read: Callable[[], Config] | None = None
        """Reads the config as a reload does."""

    def loaded(self, config: Config) -> None:
        """Take the config of a reload."""
        self._current, self._load_time = config, datetime.fromtimestamp(self._now(), UTC)
        self._failure_time, self._problems = None, []

    def failed(self, error: Exception) -> None:
        """Take the error of a failed reload."""
        self._failure_time, self._problems = datetime.fromtimestamp(self._now(), UTC), _problems(error)

    async def settings(self) -> Sequence[Setting]:
        """Return the settings in force, then the flags. They are read once for each config, in a thread."""
        current = self._current
        if self._shown is None or self._shown[0] is not current:
            self._shown = current, await asyncio.to_thread(list, settings_in_force(current, self._environment))
        return [*self._shown[1], *(Setting(name, value, SettingSource.FLAG) for name, value in self.flags.items())]

    async def status(self) -> pb.ConfigStatus:
        """Return the state of the config. Its file is read, and parsed if it has changed."""
        current = self._current
        status = pb.ConfigStatus(
            filename=current.written.filename,
            config_hash=config_hash(current),
            restart_keys=changes(self._started, current, current).need_restart,
            reload_problems=self._problems,
        )
        status.load_time.FromDatetime(self._load_time)
        if self._failure_time is not None:
            status.failed_reload_time.FromDatetime(self._failure_time)
        await self._compare(status, current)
        return status

    async def _compare(self, status: pb.ConfigStatus, current: Config) -> None:
        """State in a status whether the file has changed since it was loaded."""
        if self.read_text is None or self.read is None:
            return
        try:
            if await asyncio.to_thread(self.read_text) == current.written.text:
                return
            new = await asyncio.to_thread(self.read)
        except (ConfigError, OSError, ValueError) as error:
            status.file_changed = True
            status.file_problems.extend(_problems(error))
            return
        found = changes(self._started, current, new)
        status.file_changed = True
        status.reload_keys.extend(found.applied)
        status.restart_keys.extend(key for key in found.need_restart if key not in status.restart_keys)


def _problems(error: Exception) -> list[pb.ConfigProblem]:
    """Return the problems of a config that could not be read."""
    if not isinstance(error, ConfigError):
        return [pb.ConfigProblem(message=str(error)[:MAX_PROBLEM_CHARACTERS])]
    return [
        pb.ConfigProblem(line=each.line, path=each.path, message=each.expected)
        for each in error.problems[:MAX_PROBLEMS]
    ]
