"""How many files, and so connections, the system lets the process have open."""

import resource
from contextlib import suppress

MOST = 1_048_576
OTHERS = 512
"""Open beside clients and providers: database, log, listeners, spare connections of the HTTP face."""
LEAST = 1024
"""Those, and some 250 calls at once: fewer are a limit that nobody meant for a server."""


def raise_file_limit() -> int:
    """Most open files, after asking for all that the system gives the process without asking anybody. Raises OSError
    where these are too few to serve with.
    """
    allowed, possible = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if possible == resource.RLIM_INFINITY else min(MOST, possible)
    if allowed != resource.RLIM_INFINITY and allowed < wanted:
        with suppress(ValueError, OSError):  # macOS has another bound, which it does not tell
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, possible))
            allowed = wanted
    if allowed == resource.RLIM_INFINITY:
        return MOST
    if allowed < LEAST:
        how = "raise the hard limit (`ulimit -Hn`, `LimitNOFILE=` of systemd, `--ulimit nofile=` of Docker)"
        raise OSError(f"the system lets this process have {allowed} open files, and it needs {LEAST} or more: {how}")
    return allowed


def most_clients(files: int) -> int:
    """How many clients may be connected, of whom each may need a connection to a provider."""
    return (files - OTHERS) // 2
