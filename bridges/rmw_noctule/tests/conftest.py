"""Where the tests find the library, ROS 2 and its suite."""

import itertools
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LIBRARY = ROOT / "target/rmw_noctule"
# Domains that no other test uses, one for each test.
DOMAINS = itertools.count(190)


@pytest.fixture
def ros() -> dict[str, str]:
    """The environment of a ROS 2 program on the bus."""
    path = f"{LIBRARY}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    domain = str(next(DOMAINS))
    return {**os.environ, "RMW_IMPLEMENTATION": "rmw_noctule", "LD_LIBRARY_PATH": path, "ROS_DOMAIN_ID": domain}


def installed(package: str, program: str) -> Path:
    """A program of a ROS 2 package; the test is skipped if it is not installed."""
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(":"):
        found = Path(prefix) / "lib" / package / program
        if found.is_file():
            return found
    pytest.skip(f"{package} is not installed")
