"""Runs example scripts of PyTorch and of Hugging Face on a device and on the CPU, and compares.

    tools/run-examples ~/examples ~/accelerate
    tools/run-examples ~/examples --only mnist "word_language_model LSTM"

The folders are checkouts of pytorch/examples and huggingface/accelerate. Data that a script would
download is made up. What a script imports, torchvision for most, has to be in the environment:
EXAMPLES_PYTHON=~/venv/bin/python names another one than that of tools/setup.

Each script runs three times: on the CPU, on the CPU with weights that start one rounding apart, and
on the device. Printed are by script whether the words it prints are the same, the largest relative
difference of a printed number and the difference of all final weights (of the run a rounding apart
in parentheses), the part of operations that were deferred, the CPU's seconds from the first model
that is moved to the end, the device's time over that, and what the device waited for its compiles
besides: short scripts would end before they are hot.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from comparison import compare
from scripts import SCRIPTS, Script

_COLUMNS = ["script", "same words", "numbers", "weights", "deferred", "CPU s", "time", "waited s"]
_RUNS = {"cpu": ("cpu", []), "apart": ("cpu", ["--round-otherwise"])}


def copied(script: Script, checkout: Path, copy: Path, device: str) -> Path:
    """The folder of the script in a copy of its folder of the checkout, with data, for a device."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(checkout / script.path.partition("/")[0], copy)
    inside = (copy / script.path.partition("/")[2]).parent
    for place, write in script.data.items():
        write(inside / place)
    exchanges = {**script.exchanges, **(script.cpu_exchanges if device == "cpu" else {})}
    for file in copy.rglob("*.py"):
        text = file.read_text()
        for old, new in exchanges.items():
            text = text.replace(old, new.replace("{device}", device))
        file.write_text(text.replace("torch.cuda.", f"torch.{device}.").replace("cuda", device))
    return inside


def run(
    script: Script, checkout: Path, folder: Path, device: str, run_name: str, seconds: float
) -> dict[str, Any]:
    """What was observed of the script."""
    device, options = _RUNS.get(run_name, (device, []))
    inside = copied(script, checkout, folder / run_name, device)
    result = folder / f"{run_name}.pt"
    result.unlink(missing_ok=True)
    launch = [sys.executable]
    if script.processes > 1:
        launch += ["-m", "torch.distributed.run", "--standalone"]
        launch += [f"--nproc-per-node={script.processes}"]
    command = [*launch, str(Path(__file__).with_name("observe.py")), str(result), device, *options]
    command += [str(inside / Path(script.path).name)]
    command += script.arguments.replace("cuda", device).replace("{folder}", str(inside)).split()
    # Dropout's numbers are the CPU's, and what is not there is not looked for outside.
    environment = {**os.environ, "TORCH_LAZY_RNG": "eager"}
    environment |= {"ACCELERATE_TORCH_DEVICE": device, "HF_HUB_OFFLINE": "1"}
    environment["TORCH_LAZY_ACCELERATOR"] = str(int(device == "lazy"))
    log = folder / f"{run_name}.log"
    with log.open("wb") as out:
        done = subprocess.run(command, cwd=inside, env=environment, stdout=out,
                              stderr=subprocess.STDOUT, timeout=seconds, check=False)  # fmt: skip
    if done.returncode or not result.exists():
        lines = log.read_text().strip().splitlines() or ["nothing printed"]
        raise RuntimeError(f"on {device}: {lines[-1]} (see {log})")
    return torch.load(result)


def row(script: Script, checkout: Path, arguments: argparse.Namespace) -> str:
    folder = arguments.results.resolve() / script.name.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        cpu, apart, found = (
            run(script, checkout, folder, arguments.device, name, arguments.seconds)
            for name in ("cpu", "apart", arguments.device)
        )
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return f"| {script.name} | failed {error} " + "| " * (len(_COLUMNS) - 2) + "|"
    of_device, of_rounding = (compare(r, cpu, arguments.device) for r in (found, apart))
    cells = [script.name, "yes" if of_device.same_words else "no"]
    cells += [f"{of_device.numbers:.0e} ({of_rounding.numbers:.0e})"]
    if of_device.weights is None or of_rounding.weights is None:
        cells += [""]
    else:
        cells += [f"{of_device.weights:.0e} ({of_rounding.weights:.0e})"]
    cells += [f"{found['deferred']:.0%}", f"{cpu['seconds']:.1f}"]
    cells += [f"{found['seconds'] / cpu['seconds']:.2f}", f"{found['waited']:.1f}"]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="run-examples",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--device", default="lazy")
    parser.add_argument("--only", nargs="+", help="names of scripts, as in the table")
    parser.add_argument("--seconds", type=float, default=600, help="most for one run")
    parser.add_argument("--results", type=Path, default=Path("build/examples"))
    arguments = parser.parse_args()
    print("| " + " | ".join(_COLUMNS) + " |")
    print("|---" * len(_COLUMNS) + "|")
    for checkout in arguments.checkouts:
        for script in SCRIPTS:
            if arguments.only and script.name not in arguments.only:
                continue
            if not (checkout / script.path).exists():
                continue
            print(row(script, checkout, arguments), flush=True)


if __name__ == "__main__":
    main()
