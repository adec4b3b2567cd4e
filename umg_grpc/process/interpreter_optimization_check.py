"""Check how the Python interpreter was built: without optimizations the gateway is 1.4 to 1.9 times slower."""

import platform
import sysconfig

BUILD_OPTIMIZATIONS = {"PGO": "--enable-optimizations", "LTO": "--with-lto"}
BUILD_REMEDY = "use one of an official image (python:3.14-slim), Debian or `uv python install`"


def missing_optimizations() -> list[str]:
    """Return the optimizations (PGO, LTO) that this interpreter was built without; empty if its build is unknown."""
    options = sysconfig.get_config_var("CONFIG_ARGS")
    if platform.python_implementation() != "CPython" or not isinstance(options, str) or not options:
        return []
    return [name for name, option in BUILD_OPTIMIZATIONS.items() if option not in options]
