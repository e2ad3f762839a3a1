"""The JVM that the tests of a module share ends with it."""

from collections.abc import Iterator

import pytest

from tests.live.code.lockstep.stepping import HELD


@pytest.fixture(scope="module", autouse=True)
def held() -> Iterator[None]:
    """Close what was held."""
    yield
    while HELD:
        HELD.pop().close()
