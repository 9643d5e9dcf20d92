"""Loans, seen by a program on rclcpp with types of its own."""

import json
import subprocess
from pathlib import Path

from conftest import ROOT

SOURCE = Path(__file__).parent / "loans"
BUILD = ROOT / "target/rmw_noctule_loans"
PATIENCE_S = 60


def test_a_loan_lies_in_shared_memory_and_is_read_there(ros: dict[str, str]) -> None:
    commands = [["cmake", "-S", SOURCE, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release", "-Wno-dev"], ["cmake", "--build", BUILD]]
    for command in commands:
        subprocess.run(command, check=True, capture_output=True)
    libraries = f"{BUILD}:{ros['LD_LIBRARY_PATH']}"
    environment = {**ros, "LD_LIBRARY_PATH": libraries, "ROS_DISABLE_LOANED_MESSAGES": "0"}
    done = subprocess.run(
        [BUILD / "program"], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    said = json.loads(done.stdout.splitlines()[-1])
    # A type whose fields are not all in the same place in CDR and in memory is not lent.
    assert said == {"plain": 1, "gap": 0, "written_in_place": 100, "read_in_place": 100, "right": 100}
