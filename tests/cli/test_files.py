"""The limit of open files."""

import resource

from umg_grpc.cli.files import OTHERS, most_clients, raise_file_limit


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
    assert most_clients(OTHERS + 200) == 100
    assert most_clients(64) == 1
