"""Number of cores that this process may use: `umg serve --workers auto` starts as many processes."""

import os
import sys
from pathlib import Path, PurePosixPath

CGROUP_FOLDER = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")


def usable_cores(groups: Path = CGROUP_FOLDER, own: Path = OWN_CGROUPS) -> int:
    """Return the cores of the process's affinity, or fewer where a CPU quota of its container or service allows less:
    whole cores of it, at least 1. One more would use up the quota early, which pauses all processes until its next
    period. `groups`: folder of the control groups; `own`: file with the groups of this process.
    """
    allowed = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, min([allowed, *(int(quota) for quota in _quotas(groups, own))]))


def _quotas(groups: Path, own: Path) -> list[float]:
    """Return the quotas in cores of the process's control group and of all groups around it. A container sees its own
    group as the root.
    """
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return []
    quotas = list[float]()
    for line in lines:
        _, controllers, path = line.split(":", 2)
        group = PurePosixPath("/", path).relative_to("/")
        if not controllers:  # version 2
            quotas += [_quota(_words(groups / each / "cpu.max")) for each in (group, *group.parents)]
        elif "cpu" in controllers.split(","):
            for folder in (groups / "cpu" / each for each in (group, *group.parents)):
                quotas.append(_quota([*_words(folder / "cpu.cfs_quota_us"), *_words(folder / "cpu.cfs_period_us")]))
    return [quota for quota in quotas if quota > 0]


def _words(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").split()
    except OSError:  # not in the root group, nor in a container for the groups outside
        return []


def _quota(words: list[str]) -> float:
    """Return the cores of a quota and its period, in microseconds; 0 for none: `max`, or -1 in version 1."""
    match words:
        case [quota, period] if quota.isdecimal() and period.isdecimal() and int(period):
            return int(quota) / int(period)
        case _:  # unlimited, or an unknown form
            return 0.0
