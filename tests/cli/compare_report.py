#!/usr/bin/env python3
"""Compares `perf report` with `tally report -j`: the periods of each (event, command, object,
function).

    compare_report.py self PERF TALLY
        perf report --no-children … -F overhead,period,comm,dso,sym -t '|'
    compare_report.py total PERF TALLY
        perf report --children … -F overhead_children,overhead,period,comm,dso,sym

Periods of self must be equal.  perf prints totals only as percentages, which must agree to the last
digit.  perf lists unnamed code by address, tally by function: here that is one row, and slots of
the linkage table (docs/compatibility.md, `plt`) count with it.  perf has no parameters: functions
that tally tells apart by theirs are one row.  Totals leave out unnamed functions
and those that have another name because of the cause `call-site`.
"""
import collections
import json
import re
import sys

CALL_SITES = {'_start', '_dl_start_user', '__pfx_clear_bss', 'secondary_startup_64_no_verify'}


JIT = '[JIT]'


def function_name(name):
    return '[unknown]' if name is None or re.match(r'(0x)?[0-9a-f]{16}$|0x[0-9a-f]+$|\[.*\+0x[0-9a-f]+\]$|\.plt(\.got|\.sec)?$', name) or name.endswith('@plt') else name


def read_perf(path, fields):
    rows, periods, event = collections.defaultdict(float), {}, None
    for line in open(path, errors='surrogateescape'):
        head = re.match(r"# Samples: .* of events? '(.*)'", line)
        event = head.group(1) if head else event
        period = re.match(r'# Event count \(approx\.\): (\d+)', line)
        if period:
            periods[event] = int(period.group(1))
        parts = [part.strip() for part in line.rstrip('\n').split('|')]
        if line.startswith('#') or len(parts) < len(fields):
            continue
        row = dict(zip(fields, parts[:len(fields) - 1] + ['|'.join(parts[len(fields) - 1:])]))
        symbol = re.sub(r'^\[.\] ', '', row['sym'])
        where = JIT if re.match(r'\[JIT\] tid \d+$|jitted-\d+-\d+\.so$', row['dso']) else row['dso']
        value = float(row['total'].rstrip('%')) if 'total' in row else int(row['period'])
        # the tiers of a function of V8 are one row
        symbol = re.sub(r'^(JS|LazyCompile|Function|Script|Eval):[~^+*-]', r'\1:', symbol)
        rows[event, row['comm'], where, function_name(symbol)] += value
    return rows, periods


def read_tally(path, what):
    rows, periods = collections.defaultdict(float), {}
    with open(path) as file:
        document = json.load(file)
    for event in document['events']:
        periods[event['event']] = event['period']
        for entry in event['entries']:
            name = entry['object'] or '[unknown]'
            name = name if name.startswith('[') else name.rpartition('/')[2]
            name = JIT if name in (JIT, 'perf.map', 'jit.dump') else name
            rows[event['event'], entry['command'], name, function_name(entry['function'])] += entry[what]
    return rows, periods


def join_overloads(tally, perf):
    """Adds f(int), f() and f (0x1234) to the row f, if perf has only that."""
    for key in [key for key in tally if key not in perf]:
        name = re.sub(r' ?\([^()]*(\([^()]*\)[^()]*)*\)( const)?$', '', key[3])
        if (*key[:3], name) in perf and name != key[3]:
            tally[(*key[:3], name)] += tally.pop(key)


def is_equal(key, what, perf, tally, periods):
    if what == 'self':
        return perf[key] == tally[key]
    # Sums of values rounded to a hundredth of a percent.
    return abs(perf[key] - 100 * tally[key] / periods[key[0]]) <= 0.0101


def main():
    what = sys.argv[1]
    fields = ['overhead', 'period', 'comm', 'dso', 'sym']
    perf, perf_periods = read_perf(sys.argv[2], ['total'] + fields if what == 'total' else fields)
    tally, periods = read_tally(sys.argv[3], what)
    join_overloads(tally, perf)
    keys = [key for key in sorted(set(perf) | set(tally)) if perf[key] or tally[key]]
    if what == 'total':
        # perf does not show that the kernel cut a chain at its limit.
        keys = [key for key in keys if key[3] not in ('[unknown]', '[truncated]') and key[3] not in CALL_SITES]
    wrong = [key for key in keys if not is_equal(key, what, perf, tally, periods)]
    for key in wrong[:10]:
        print('%s: perf %s tally %s' % (' | '.join(key), perf[key], tally[key]))
    for event in periods:
        if perf_periods.get(event) != periods[event]:
            print('%s: perf sums up %s, tally %s' % (event, perf_periods.get(event), periods[event]))
            wrong.append(event)
    print('rows %d events %d wrong %d' % (len(keys), len(periods), len(wrong)))
    return 1 if wrong or not keys else 0


if __name__ == '__main__':
    sys.exit(main())
