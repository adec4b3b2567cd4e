"""Installation of the packages and programs that tests start, each once in its own directory below `.venv/share`.

`make test` runs it first, so that no test waits for a download.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

from scripts.knowledge import packages as data_packages
from tests.world.agents import install as agents
from tests.world.connect.browser_bundle import bundle
from tests.world.pages import page_tools
from tests.world.sdk import apart_runner, node_runner
from tests.world.sign_on import issuer_process

INSTALLATIONS = (
    *(
        agents.installed,
        node_runner.installed,
        apart_runner.installed,
        data_packages.installed,
        bundle,
        issuer_process.installed,
        page_tools.installed,
    ),
)


def main() -> None:
    """Install the missing ones. After an error, which is written to standard error, their tests fail in CI, and are
    skipped elsewhere.
    """
    with ThreadPoolExecutor() as pool:
        for installation in [pool.submit(install) for install in INSTALLATIONS]:
            if error := installation.exception():
                sys.stderr.write(f"{error}\n")


if __name__ == "__main__":
    main()
