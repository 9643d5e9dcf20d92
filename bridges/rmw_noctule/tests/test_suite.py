"""ROS 2's own suite for middleware, against the table of what it says."""

import os
import subprocess
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

TABLE = tomllib.loads((Path(__file__).parent / "suite.toml").read_text())
# colcon does not install the suite: the folder in which test_rmw_implementation was built.
FOLDER = os.environ.get("TEST_RMW_IMPLEMENTATION")
# No program takes longer than some seconds.
PATIENCE_S = 120


@pytest.mark.parametrize("program", TABLE["passed"])
def test_the_suite_says_what_the_table_says(program: str, ros: dict[str, str], tmp_path: Path) -> None:
    if FOLDER is None:
        pytest.skip("TEST_RMW_IMPLEMENTATION names no folder in which test_rmw_implementation was built")
    report = tmp_path / "report.xml"
    subprocess.run(
        [Path(FOLDER) / program, f"--gtest_output=xml:{report}"],
        env=ros,
        timeout=PATIENCE_S,
        capture_output=True,
        check=False,
    )
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [case.get("name") for case in cases if case.find("failure") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    assert failed == []
    assert len(cases) - skipped == TABLE["passed"][program]
    assert skipped == TABLE["skipped"].get(program, 0)
