"""What the figures were taken on."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import datetime, timezone

_ASK = """
import json, torch
cuda = torch.cuda.is_available()
properties = torch.cuda.get_device_properties(0) if cuda else None
print("@@" + json.dumps({
    "torch": torch.__version__,
    "CUDA of torch": torch.version.cuda or "none",
    "device": properties.name if cuda else None,
    "compute capability": f"{properties.major}.{properties.minor}" if cuda else None,
    "multiprocessors": properties.multi_processor_count if cuda else None,
    "memory": f"{properties.total_memory / 2**30:.0f} GiB" if cuda else None,
}))
"""


def machine() -> dict[str, str | None]:
    """The machine in words; "device" is None where PyTorch sees no GPU."""
    # In a process of its own: this one never has a context of the device.
    told = subprocess.run(
        [sys.executable, "-c", _ASK],
        capture_output=True,
        text=True,
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        check=False,
    )
    answers = [line for line in told.stdout.splitlines() if line.startswith("@@")]
    if not answers:
        sys.exit(f"{sys.executable} cannot import torch:\n{told.stderr}")
    facts = json.loads(answers[0].removeprefix("@@"))
    facts["driver"] = _driver() if facts["device"] else None
    facts["Python"] = platform.python_version()
    facts["system"] = f"{platform.system()} {platform.release()}, {os.cpu_count()} cores"
    facts["date"] = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return facts


def _driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        return f"unknown ({error})"
    return told.stdout.splitlines()[0].strip() if told.stdout.strip() else "unknown"
