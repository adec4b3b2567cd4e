"""Rewriting of the assertions of test modules in a process of its own, beside the collection.

pytest rewrites a module when it imports it, and caches its bytecode. In a new checkout that takes a third of the time
of the collection, during which the other processors have nothing to do. The process here takes the modules from the end,
until it meets the collection.
"""

import multiprocessing
import os
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import PYC_TAIL, _rewrite_test, _write_pyc, assertstate_key, get_cache_dir, try_makedirs


@contextmanager
def rewriting(config: pytest.Config) -> Generator[None]:
    """Rewrite the test modules of the command line, the last one first, as long as the context is open."""
    modules = list(_modules(config.invocation_params.dir / argument.partition("::")[0] for argument in config.args))
    if sys.dont_write_bytecode or len(modules) < 2 or assertstate_key not in config.stash:
        yield
        return
    process = multiprocessing.get_context("fork").Process(target=_rewrite, args=(config, modules), name="rewriting")
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _modules(paths: Iterable[Path]) -> Iterable[Path]:
    """Yield the test modules of paths, in the order of their collection."""
    for path in paths:
        yield from sorted(path.rglob("test_*.py")) if path.is_dir() else [path]


def _rewrite(config: pytest.Config, modules: Sequence[Path]) -> None:
    """Write the bytecode of the modules that have none."""
    os.setpgid(0, 0)  # Ctrl-C is for the main process
    for module in reversed(modules):
        folder = get_cache_dir(module)
        bytecode = folder / f"{module.stem}{PYC_TAIL}"
        if not bytecode.exists() and try_makedirs(folder):
            with suppress(OSError, SyntaxError, ValueError):  # the collection reports it
                version, code = _rewrite_test(module, config)
                _write_pyc(config.stash[assertstate_key], code, version, bytecode)
