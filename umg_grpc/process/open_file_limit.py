"""Limit of open files of this process, which limits the number of its connections."""

import resource
from contextlib import suppress

MAX_FILES = 1_048_576
OTHER_FILES = 512
"""Files for other uses than calls: database, log, listeners, connections of the HTTP face beyond its limit."""
LEAST_FILES = 1024
"""Least limit to serve with: `OTHER_FILES`, and some 250 concurrent calls."""


def raise_file_limit() -> int:
    """Raise the soft limit of open files to the hard limit. Return it. Raise OSError if it is too low to serve."""
    allowed, possible = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if possible == resource.RLIM_INFINITY else min(MAX_FILES, possible)
    if allowed != resource.RLIM_INFINITY and allowed < wanted:
        with suppress(ValueError, OSError):  # macOS has a lower limit, which it does not report
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, possible))
            allowed = wanted
    if allowed == resource.RLIM_INFINITY:
        return MAX_FILES
    if allowed < LEAST_FILES:
        how = "raise the hard limit (`ulimit -Hn`, `LimitNOFILE=` of systemd, `--ulimit nofile=` of Docker)"
        raise OSError(
            f"the system lets this process have {allowed} open files, and it needs {LEAST_FILES} or more: {how}"
        )
    return allowed


def max_clients(files: int) -> int:
    """Return the number of clients for which `files` open files suffice: each needs a provider's connection too."""
    return (files - OTHER_FILES) // 2
