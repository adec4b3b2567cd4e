"""Fixtures that several directories share."""

import os

os.environ.setdefault(
    "GRPC_ENABLE_FORK_SUPPORT", "0"
)  # before grpc is loaded: tests start processes beside its threads

pytest_plugins = ["tests.databases", "tests.redis"]
