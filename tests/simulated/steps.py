#!/usr/bin/env python3
"""Compares the simulated PMU with the CPU's own single steps, on random programs.  TAP.

For each program the total of instructions must be the same.  The samples of a period P must be its
P-th, 2P-th, … instruction: each address appears exactly as often as the CPU was there.
Usage: steps.py TALLY PERF SINGLE_STEP CC PROGRAMS
"""
import array
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from generate import program  # pylint: disable=wrong-import-position

tally, perf, single_step, compiler, programs = *sys.argv[1:5], int(sys.argv[5])


def run(*command, **options):
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False, **options)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)}: {result.returncode}: {result.stderr[-400:]}")
    return result


def trace_of(folder, binary):
    run(single_step, f"{folder}/trace", binary)
    trace = array.array("Q")
    trace.frombytes(pathlib.Path(f"{folder}/trace").read_bytes())
    return trace


def counted(folder, binary, event):
    run(tally, "stat", "--provider", "simulated", "-j", "-o", f"{folder}/counts", "-e", event, "--", binary)
    return json.loads(pathlib.Path(f"{folder}/counts").read_text(encoding="utf-8"))["events"][0]["value"]


def sampled(folder, binary, event, period):
    run(tally, "record", "--provider", "simulated", "-q", "-e", event, "-c", str(period), "-o", f"{folder}/data", "--", binary)
    text = run(perf, "script", "-i", f"{folder}/data", "-F", "ip", "-G").stdout
    return [int(line, 16) for line in text.split()]


def compare(seed):
    """Returns the difference, or None."""
    with tempfile.TemporaryDirectory(prefix="tally-steps-") as folder:
        binary = f"{folder}/program"
        pathlib.Path(f"{folder}/program.c").write_text(program(seed), encoding="ascii")
        run(compiler, "-w", f"-O{seed % 4}", "-ffreestanding", "-fno-builtin", "-nostdlib", "-static",
            "-fno-stack-protector", "-o", binary, f"{folder}/program.c")
        trace = trace_of(folder, binary)
        total = counted(folder, binary, "instructions")
        if total != len(trace):
            return f"{total:.0f} instructions are counted, {len(trace)} stepped"
        period = 1 if len(trace) < 4000 else 7 + seed % 90
        samples, expected = sampled(folder, binary, "instructions", period), trace[period - 1::period].tolist()
        for index, (sample, step) in enumerate(zip(samples, expected)):
            if sample != step:
                return f"period {period}: sample {index} is at {sample:#x}, the step at {step:#x}"
        return None if len(samples) == len(expected) else f"{len(samples)} samples, {len(expected)} expected"


def attempt(seed):
    try:
        return compare(seed)
    except (RuntimeError, subprocess.TimeoutExpired, ValueError) as error:
        return str(error)


print(f"1..{programs}")
failed = False
with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
    for number, difference in enumerate(pool.map(attempt, range(1, programs + 1)), 1):
        print(f"{'not ok' if difference else 'ok'} {number} - program {number} executes and samples the same instructions"
              + (f"\n# {difference}" if difference else ""), flush=True)
        failed = failed or difference is not None
sys.exit(failed)
