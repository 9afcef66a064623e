#!/usr/bin/env python3
"""Checks that every view of a recording has the same self and total of each function.

    compare_views.py TALLY RECORDING [option of names, such as --no-inline …]

A function is its object and its name; views that have only names are compared by those that no two
objects share.  Weights are samples.  Prints the functions that differ; the last line is a summary.
"""
import collections
import gzip
import json
import re
import subprocess
import sys

TALLY, RECORDING, OPTIONS = sys.argv[1], sys.argv[2], sys.argv[3:]


def run(*arguments):
    command = [TALLY, *arguments, *OPTIONS, '-i', RECORDING] if arguments[0] != 'diff' else \
        [TALLY, *arguments, *OPTIONS, RECORDING, RECORDING]
    done = subprocess.run(command, capture_output=True, timeout=120)
    if done.returncode:
        raise SystemExit('%s: %s' % (command, done.stderr.decode()))
    out = gzip.decompress(done.stdout) if done.stdout[:2] == b'\x1f\x8b' else done.stdout
    return out.decode(errors='surrogateescape')


def short(path):
    return path if path is None or path.startswith('[') else path.rpartition('/')[2]


def plain(name):
    """Without the symbol's version, which some views show."""
    return re.sub(r'(.)@@?[A-Z].*', r'\1', name)


def is_named(name):
    return name is not None and not re.match(r'\[|0x|0+[0-9a-f]+$', name)


class Sums:
    """Sums up stacks: lists of functions, innermost first, with their weights."""

    def __init__(self, stacks=()):
        self.own, self.total = collections.Counter(), collections.Counter()
        for frames, weight in stacks:
            frames = [(where, plain(name)) for where, name in frames]
            if frames:
                self.own[frames[0]] += weight
            for function in set(frames):
                self.total[function] += weight


def of_report(*arguments):
    sums = Sums()
    document = json.loads(run('report', '-j', '--children', *arguments))
    for entry in document['events'][0]['entries']:
        if is_named(entry['function']):
            key = short(entry['object']), plain(entry['function'])
            sums.own[key] += entry['self_samples']
            sums.total[key] += entry['total_samples']
    return sums


def of_tree():
    """A stack ends in a node as often as the node's weight exceeds its children's."""
    document = json.loads(run('report', '-j', '-g', 'caller', '--sort', 'dso,sym'))['events'][0]
    sums = Sums()
    one = document['period'] / document['samples']
    for entry in document['entries']:
        path = [dict(entry, depth=-1, weight=entry['total'])]
        own = collections.Counter()
        for node in [*entry['tree'], {'depth': -1}]:
            del path[node['depth'] + 1:]
            if path:
                own[short(path[-1]['object']), path[-1]['function']] -= node['weight']
            if 'weight' in node:
                own[short(node['object']), node['function']] += node['weight']
                path.append(node)
        key = short(entry['object']), entry['function']
        if is_named(key[1]):
            key = key[0], plain(key[1])
            sums.own[key] += round((entry['total'] + own[short(entry['object']), entry['function']]) / one)
            sums.total[key] += entry['total_samples']
    return sums


def of_flame_graph():
    page = run('flamegraph', '--format', 'html', '--weight', 'samples', '-o', '-')
    data = json.loads(re.search(r'id="tally-data">(.*?)</script>', page, re.S).group(1))
    nodes, at, stacks = data['nodes'], 0, []
    assert not data['left']['weight'], 'the flame graph is not complete'

    def read(stack):
        nonlocal at
        head, weight = nodes[at], 0
        at += 1
        if head & 1:
            weight = nodes[at]
            at += 1
        at += head >> 1 & 1
        children = nodes[at]
        at += 1
        if stack is None:
            here = []
        else:
            name, where = data['frames'][3 * (head >> 2)], data['frames'][3 * (head >> 2) + 1]
            here = [(data['objects'][where - 1] if where else None, data['names'][name]), *stack]
        stacks.append((here, weight))
        for _ in range(children):
            read(here)

    sys.setrecursionlimit(100000)
    while at < len(nodes):
        read(None)
    return Sums(stacks)


def of_diff():
    sums = Sums()
    for counter, arguments in ((sums.own, []), (sums.total, ['--children'])):
        for row in json.loads(run('diff', '-j', *arguments))['rows']:
            assert row['old_samples'] == row['new_samples'], row
            if is_named(row['function']):
                counter[row['object'], plain(row['function'])] += row['new_samples']
    return sums


def of_annotate():
    sums = Sums()
    for part in json.loads(run('annotate', '-j', '--no-asm', '--all-hot', '1000'))['functions']:
        sums.own[short(part['object']), plain(part['function'])] += part['self_samples']
    return sums


def of_fold():
    stacks = []
    for line in run('fold', '--weight', 'samples').splitlines():
        stack, _, weight = line.rpartition(' ')
        stacks.append(([(None, name) for name in stack.split(';')[:0:-1]], int(weight)))
    return Sums(stacks)


def of_script():
    stacks, frames = [], []
    for line in [*run('script', '-F', 'ip,sym').splitlines(), '']:
        frame = re.match(r'\s+[0-9a-f]+ (.*)', line)
        if frame:
            frames.append((None, plain(re.sub(r' \(inlined\)$', '', frame.group(1)))))
        elif frames:
            stacks.append((frames, 1))
            frames = []
    return Sums(stacks)


def of_speedscope():
    document = json.loads(run('export', '-f', 'speedscope', '-o', '-'))
    names = [frame['name'] for frame in document['shared']['frames']]
    return Sums(([(None, names[frame]) for frame in reversed(stack)], 1)
                for profile in document['profiles'] for stack in profile['samples'])


def of_firefox():
    document = json.loads(run('export', '-f', 'firefox', '-o', '-'))
    stacks = []
    for thread in document['threads']:
        strings = thread.get('stringArray') or document['shared']['stringArray']
        tables = thread if 'stackTable' in thread else document['shared']
        for stack in thread['samples']['stack']:
            frames = []
            while stack is not None:
                frame = tables['stackTable']['frame'][stack]
                function = tables['frameTable']['func'][frame]
                frames.append((None, strings[tables['funcTable']['name'][function]]))
                stack = tables['stackTable']['prefix'][stack]
            stacks.append((frames, 1))
    return Sums(stacks)


def fields(message):
    """The fields of a protobuf message: (number, value); bytes where it has a length."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = number()
        if key & 7 == 2:
            size = number()
            yield key >> 3, message[at:at + size]
            at += size
        else:
            yield key >> 3, number()


def packed(value):
    return [value] if isinstance(value, int) else \
        [n for _, n in fields(b''.join(bytes([8]) + b for b in re.findall(rb'[\x80-\xff]*[\x00-\x7f]', value)))]


def of_pprof():
    raw = subprocess.run([TALLY, 'export', '-f', 'pprof', *OPTIONS, '-o', '-', '-i', RECORDING],
                         capture_output=True, timeout=120, check=True).stdout
    raw = gzip.decompress(raw) if raw[:2] == b'\x1f\x8b' else raw
    samples, locations, functions, strings = [], {}, {}, []
    for number, value in fields(raw):
        if number == 2:
            samples.append(value)
        elif number == 4:
            location, lines = 0, []
            for field, part in fields(value):
                if field == 1:
                    location = part
                elif field == 4:
                    lines += [n for f, n in fields(part) if f == 1]
            locations[location] = lines
        elif number == 5:
            function = dict(fields(value))
            functions[function[1]] = function.get(2, 0)
        elif number == 6:
            strings.append(value.decode())
    stacks = []
    for sample in samples:
        frames, values = [], []
        for field, part in fields(sample):
            if field == 1:
                frames += [(None, strings[functions[line]])
                           for location in packed(part) for line in locations[location]]
            elif field == 2:
                values += packed(part)
        stacks.append((frames, values[0]))
    return Sums(stacks)


def compare_views(truth, views, named, recorded):
    """`named`: views that have only names; `recorded`: sums by the recorded addresses."""
    objects = collections.defaultdict(set)
    for where, name in truth.total:
        objects[name].add(where)
    differ = 0

    def compare(view, what, name, expected, got):
        nonlocal differ
        if expected != got:
            differ += 1
            print('%s: %s of %s is %d, in the report %d' % (view, what, name, got, expected))

    for key in sorted(truth.total):
        for view, sums in views.items():
            compare(view, 'self', key, truth.own[key], sums.own[key])
            if view != 'annotate':
                compare(view, 'total', key, truth.total[key], sums.total[key])
        for view, sums in named.items():
            # script has perf's names, without what tells functions of one name apart
            is_apart = view == 'script' and re.search(r'[)\]>]$', key[1])
            if len(objects[key[1]]) == 1 and not is_apart:
                right = recorded if view == 'script' else truth
                compare(view, 'self', key[1], right.own[key], sums.own[None, key[1]])
                compare(view, 'total', key[1], right.total[key], sums.total[None, key[1]])
    for view, sums in views.items():
        for key in sums.total:
            if is_named(key[1]) and key not in truth.total:
                compare(view, 'total', key, 0, sums.total[key])
    print('%d functions in %d views, %d differ' % (len(truth.total), len(views) + len(named) + 1, differ))
    return differ != 0


def main():
    truth = of_report('--sort', 'dso,sym')
    if '--language-frames' in OPTIONS:
        return compare_views(truth, {'report -g': of_tree(), 'flamegraph': of_flame_graph(), 'diff': of_diff()},
                             {'fold': of_fold()}, None)
    recorded = of_report('--sort', 'dso,sym', '--raw-addresses') # which script shows
    return compare_views(truth, {
        'report --sort comm,dso,sym': of_report(), 'report -g': of_tree(),
        'flamegraph': of_flame_graph(), 'diff': of_diff(), 'annotate': of_annotate(),
    }, {'script': of_script(), 'fold': of_fold(), 'speedscope': of_speedscope(),
        'firefox': of_firefox(), 'pprof': of_pprof()}, recorded)


sys.exit(main())
