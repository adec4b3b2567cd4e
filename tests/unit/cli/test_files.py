"""The limit of open files."""

import resource
import subprocess
import sys
from pathlib import Path

from umg_grpc.process.open_file_limit import LEAST_FILES, OTHER_FILES, max_clients, raise_file_limit


def test_the_process_may_open_all_files_that_the_system_lets_it() -> None:
    allowed, possible = resource.getrlimit(resource.RLIMIT_NOFILE)
    fewer = min(256, allowed) if allowed != resource.RLIM_INFINITY else 256
    resource.setrlimit(resource.RLIMIT_NOFILE, (fewer, possible))
    try:
        files = raise_file_limit()
        assert files >= allowed or possible == resource.RLIM_INFINITY
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (files, possible)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, possible))


def test_each_client_may_need_a_connection_to_a_provider() -> None:
    assert max_clients(OTHER_FILES + 200) == 100
    assert max_clients(LEAST_FILES) == 256


def test_where_too_few_files_may_be_open_nothing_is_served_and_the_reason_is_reported(tmp_path: Path) -> None:
    command = f"{sys.executable} -m umg_grpc.cli serve --data {tmp_path} --http 127.0.0.1:0 --grpc 127.0.0.1:0"
    limited = ["sh", "-c", f"ulimit -n 256 && exec {command}"]
    ended = subprocess.run(limited, capture_output=True, text=True, timeout=180, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith(
        "umg: the system lets this process have 256 open files, and it needs 1024 or more: raise the hard limit"
    )
