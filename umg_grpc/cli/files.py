"""How many files, and so connections, the system lets the process have open."""

import resource
from contextlib import suppress

MOST = 1_048_576
OTHERS = 512
"""Open beside clients and providers: database, log, listeners, spare connections of the HTTP face."""


def raise_file_limit() -> int:
    """Most open files, after asking for all that the system gives the process without asking anybody."""
    allowed, possible = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if possible == resource.RLIM_INFINITY else min(MOST, possible)
    if allowed != resource.RLIM_INFINITY and allowed < wanted:
        with suppress(ValueError, OSError):  # macOS has another bound, which it does not tell
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, possible))
            allowed = wanted
    return MOST if allowed == resource.RLIM_INFINITY else allowed


def most_clients(files: int) -> int:
    """How many clients may be connected, of whom each may need a connection to a provider."""
    return max(1, (files - OTHERS) // 2)
