"""Check that a block of a test raises an error of the gateway with certain attributes."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from umg_grpc.base.errors import UmgError


@contextmanager
def raises_error(**expected: object) -> Iterator[None]:
    """Check that the block raises UmgError with these attributes; `field` is a member of its metadata."""
    with pytest.raises(UmgError) as caught:
        yield
    error = caught.value
    found = {name: error.metadata.get("field") if name == "field" else getattr(error, name) for name in expected}
    assert found == expected, found
