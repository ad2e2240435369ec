"""How much memory a process has held."""

import resource
import sys
from pathlib import Path


def peak_mib() -> float:
    """Most memory that this process has held so far, in MiB.

    By its own map of memory where the kernel tells (Linux): what `getrusage` counts begins with the memory of whoever
    started the process, which may have a large model loaded.
    """
    if (status := Path("/proc/self/status")).exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
