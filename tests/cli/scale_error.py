#!/usr/bin/env python3
"""Does the error of scaled counts cover the truth?  TAP.

    scale_error.py TALLY [RUNS]

`tally sim` counts 11 events of programs on 4 general and 3 fixed counters, so most are scaled, and
knows what each program truly did.  The programs are random, of several kinds, RUNS of each kind.  At
least 92 % of the 95 % intervals must contain the truth.  docs/accuracy.md has the table.
"""
import random
import re
import subprocess
import sys
import tempfile

MIXES = {
    'crunch': (1.25, '200 branches, 4 branch-misses, 30 cache-references, 3 cache-misses, 25 bus-cycles, '
               '300 L1-dcache-loads, 150 L1-dcache-stores, 2 dTLB-load-misses, 1 iTLB-load-misses'),
    'wander': (0.4, '150 branches, 9 branch-misses, 120 cache-references, 60 cache-misses, 80 bus-cycles, '
               '350 L1-dcache-loads, 90 L1-dcache-stores, 20 dTLB-load-misses, 1 iTLB-load-misses'),
    'branchy': (0.9, '320 branches, 40 branch-misses, 10 cache-references, 1 cache-misses, 40 bus-cycles, '
                '200 L1-dcache-loads, 60 L1-dcache-stores, 1 dTLB-load-misses, 3 iTLB-load-misses'),
}
EVENTS = ('cycles,branches,branch-misses,cache-references,cache-misses,bus-cycles,L1-dcache-loads,'
          'L1-dcache-stores,dTLB-load-misses,iTLB-load-misses,instructions')
LENGTH_MS = 1000
ROW = re.compile(r'\(\d+ % of the time, scaled(?: ± ([\d.e+-]+) %)?\).*?truly [\d,]+, ([\d.]+) % off')


def run(ms, mix):
    """One statement: so many ms of a mix, at 1000 MHz."""
    return '    run %d instructions of %s in work\n' % (max(1000, int(ms * 1e6 * MIXES[mix][0])), mix)


def repeat(parts, period_ms):
    return '    repeat %d times\n%s    end\n' % (int(LENGTH_MS / period_ms), ''.join(parts))


def steady(rng):
    return repeat([run(1, rng.choice(list(MIXES)))], 1)


def phases(rng):
    """Changes its kind of work every 15 or 40 ms."""
    text, at, mean = '', 0, rng.choice([15, 40])
    while at < LENGTH_MS:
        ms = rng.expovariate(1 / mean)
        text += run(ms, rng.choice(list(MIXES)))
        at += ms
    return text


def bursts(rng):
    """Rare, short, and expensive."""
    text, at = '', 0
    while at < LENGTH_MS:
        quiet, burst = rng.expovariate(1 / 8), rng.uniform(0.3, 2)
        text += run(quiet, 'crunch') + run(burst, 'wander')
        at += quiet + burst
    return text


def fast(rng):
    """Alternates far faster than the events take turns."""
    one, other = rng.uniform(0.05, 0.4), rng.uniform(0.05, 0.4)
    return repeat([run(one, 'crunch'), run(other, 'branchy')], one + other)


def rhythm(rng):
    """Alternates about as fast as the events take turns."""
    period, share = rng.choice([1, 2, 3, 4, 8, 12]) * rng.uniform(0.97, 1.03), rng.uniform(0.2, 0.8)
    return repeat([run(period * share, 'crunch'), run(period * (1 - share), 'wander')], period)


def count(tally, path, program, tick_ms, seed):
    """Returns [(half of the interval in %, or None; distance from the truth in %)]."""
    with open(path, 'w') as file:
        file.write('machine x86 with 2 cpus, 1000 MHz, tick %d ms, seed %d\n' % (tick_ms, seed))
        for name, (ipc, rates) in MIXES.items():
            file.write('mix %s has ipc %s, %s\n' % (name, ipc, rates))
        file.write('function work\ntask solver on cpu 0:\n%send\ncount %s of solver\n' % (program, EVENTS))
    out = subprocess.run([tally, 'sim', path], capture_output=True, text=True, check=True).stdout
    return [(float(error) if error else None, float(off)) for error, off in ROW.findall(out)]


def main():
    tally, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    kinds = (steady, phases, bursts, fast, rhythm)
    print('1..%d' % (2 * len(kinds)))
    number, failed = 0, False
    with tempfile.NamedTemporaryFile(suffix='.sim') as scenario:
        for tick_ms in 1, 4:
            for kind in kinds:
                found = []
                for seed in range(1, runs + 1):
                    rng = random.Random(seed)
                    found += count(tally, scenario.name, kind(rng), tick_ms, seed)
                # both numbers are rounded
                covered = sum(error is not None and off <= error * 1.05 + 0.01 for error, off in found)
                errors = sorted(error for error, _ in found if error is not None)
                offs = sorted(off for _, off in found)
                share = covered / max(1, len(found))
                middle = len(errors) // 2
                # an interval that is far too wide would cover everything
                is_good = len(found) >= 8 * runs and share >= 0.92 and errors[middle] < 15
                number += 1
                failed |= not is_good
                print('%sok %d - %s, turns of %d ms: %d counts, %.1f %% of the intervals hold the truth; '
                      'medians: ± %.2f %%, off by %.2f %%; worst %.2f %%' %
                      ('' if is_good else 'not ', number, kind.__name__, tick_ms, len(found), 100 * share,
                       errors[middle], offs[len(offs) // 2], offs[-1]))
    return failed


if __name__ == '__main__':
    sys.exit(main())
