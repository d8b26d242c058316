"""A sweep that is killed and resumed, in small; `python benchmarks/kill_and_resume_sweep.py` does it at length."""

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill_and_resume_sweep.py"


def test_kills_lose_no_record_and_change_no_score(tmp_path):
    command = [sys.executable, str(SCRIPT), "--kills", "2", "--limit", "16", "--out", str(tmp_path / "kill.json")]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "kill.json").read_text())["local"]
    assert found["cells"] == 3 * 9  # vanilla once, four methods offline and online
    assert len(found["kills"]) == 2
    assert all(kill["records_after"] < 27 for kill in found["kills"])
    assert found["equal_bit_for_bit"]
