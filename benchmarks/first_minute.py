"""How long the first result takes: README's quick start in fresh processes.

    python benchmarks/first_minute.py                the quick start, cold and warm
    python benchmarks/first_minute.py --evals 3000   a longer run, in which loops are compiled
    python benchmarks/first_minute.py --against DIR  beside another version's src, in turns

Cold: the folder for compiled code is empty. Warm: it is that of the run before. Bytecode is there
in both, as after an installation. Processor time is that of all threads; of several runs the least
and the median. Wall-clock times mean something on an idle machine only.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: Put around the quick start. Compilations are counted where Numba was imported.
BEFORE = """
import sys, time
begin = time.perf_counter()
if sys.argv[1] == "count":
    from numba.core import event
    recorder = event.RecordingListener()
    event.register("numba:compile", recorder)
"""
AFTER = """
import json
print(json.dumps({
    "wall": time.perf_counter() - begin,
    "cpu": time.process_time(),
    "numba": "numba" in sys.modules,
    "compiled": sum(e.is_start for _, e in recorder.buffer) if sys.argv[1] == "count" else None,
}))
"""


def quick_start(evals: int) -> str:
    """README's code without the figure, which takes Matplotlib."""
    code = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
    lines = [line for line in code.splitlines() if "plot" not in line]
    code = "\n".join(lines).replace("n_evals=300", f"n_evals={evals}")
    return BEFORE + code + AFTER


def once(code: str, source: Path, folder: str, count: bool = False) -> dict[str, float]:
    environment = os.environ | {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", code, "count" if count else "time"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evals", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--against", type=Path, action="append", default=[])
    chosen = parser.parse_args()
    code = quick_start(chosen.evals)
    sources = [ROOT / "src", *chosen.against]
    times: dict[tuple[Path, str], list[dict[str, float]]] = {}
    counts = {}
    for repeat in range(chosen.repeats):
        for source in sources:
            with tempfile.TemporaryDirectory() as folder:
                if not repeat:  # also makes the bytecode
                    counts[source, "cold"] = once(code, source, folder, count=True)["compiled"]
                    counts[source, "warm"] = once(code, source, folder, count=True)["compiled"]
            with tempfile.TemporaryDirectory() as folder:
                for kind in ("cold", "warm"):
                    times.setdefault((source, kind), []).append(once(code, source, folder))
    print(f"Quick start with {chosen.evals} evaluations, seconds of {chosen.repeats} runs")
    print(f"{'':40}{'cpu least':>11}{'median':>8}{'wall least':>12}{'median':>8}{'compiled':>10}")
    for (source, kind), runs in times.items():
        cells = [
            f(run[key] for run in runs) for key in ("cpu", "wall") for f in (min, statistics.median)
        ]
        text = "{:11.2f}{:8.2f}{:12.2f}{:8.2f}".format(*cells)
        print(f"{str(source)[-34:]:34}{kind:>6}{text}{counts[source, kind]:10}")


if __name__ == "__main__":
    main()
