"""Fixtures and settings that all tests share. The plugins of `tests.machinery` make them faster and stricter."""

import os
import signal

from hypothesis import settings

from tests.support import logs

os.environ.setdefault(
    "GRPC_ENABLE_FORK_SUPPORT", "0"
)  # before grpc is loaded: tests start processes beside its threads

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell; processes of tests inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = [
    "tests.machinery",
    "tests.support.snapshots",
    "tests.support.databases",
    "tests.support.redis",
    "tests.support.store_fixtures",
]

settings.register_profile("without deadlines", deadline=None)  # a busy machine takes longer for an example
settings.load_profile("without deadlines")

logs.configure()
