"""The machine in words: processor, cores, what it computes with. Neither its name nor any path."""

import platform
import re
from pathlib import Path
from typing import Any

import torch

from benchmarks.performance.setting import cores

FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_bf16")


def description() -> dict[str, Any]:
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    flagged = re.search(r"^flags\s*:\s*(.+)$", text, re.MULTILINE)
    flags = set(flagged.group(1).split()) if flagged else set()
    return {
        "processor": named.group(1).strip() if named else platform.processor() or platform.machine(),
        "cores": cores(),
        "flags": [flag for flag in FLAGS if flag in flags],
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_capability": torch.backends.cpu.get_cpu_capability(),
        "mkl": torch.backends.mkl.is_available(),
        "onednn": torch.backends.mkldnn.is_available(),
    }
