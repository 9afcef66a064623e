#!/usr/bin/env python3
"""Compares `perf script` with `tally script`, line for line.

Use it with `--no-inline`, or without it for copied stacks.

    compare_script.py PERF TALLY RECORDS [COMMAND]

RECORDS is `tally script --records` of the same recording.  For a recording of the whole machine,
names are compared only in the COMMAND's samples, addresses in all: other tasks may run a JIT or may
have ended, and both find names for them in other ways.  Every difference must have one of the
causes below.  Each cause is a rule over what both printed (docs/compatibility.md has the reasons).
The last line of the output counts the causes.  The exit status is 1 if a difference has no cause.
"""
import re
import sys

CAUSES = ('call-site', 'plt', 'marker', 'unwound-further', 'past-the-end', 'sigreturn', 'nested',
          'memfd', 'timer-flags', 'outer-name', 'inner-name')

OBJECT = r'\(([^()]*(?: \(deleted\))?)\)$'
FRAME = re.compile(r'^\t *([0-9a-f]+) (.*) ' + OBJECT)
LEAF = re.compile(r'^(.*: +)([0-9a-f]+) (.*) ' + OBJECT)
TIMER_FLAGS = re.compile(r'(.* timer:timer_start: .*) flags=[MDPI|]*$')
CONTEXTS = {(1 << 64) - n for n in (32, 128, 512, 640, 2048, 2176, 2560)}
MARKERS_START = (1 << 64) - 4095
STRAYED_MAX, GOES_ON_MIN = 4, 12

# Inlined functions to which addr2line gave the name of the containing function: (name, that name).
renamed = set()

OUTERMOST = {'_start', '__clone3', '__GI___clone3', 'clone3', '__clone', 'clone'}


IN_MEMORY_FILE = re.compile(r'^(.*?: +\d+ +\S+: +|\t *)([0-9a-f]+)( .* \((?:/memfd:.*|/tmp/perf-\d+\.map)\))$')


def place_in_page(match):
    before, address, after = match.groups()
    return f'{before}{int(address, 16) % 4096:x}{after}'


def nameless(line):
    # perf prints an offset in the memfd, tally an address in memory: see in_memory_file() below.
    line = IN_MEMORY_FILE.sub(place_in_page, line)
    line = re.sub(r'^\t +', '\t', line)
    return re.sub(r'^(.*?: +\d+ +\S+: +|\t *)([0-9a-f]+) .* \(.*\)$', r'\1\2 [unknown] ([unknown])', line)


def read_samples(path, command):
    """Returns [(head line, [frame lines])]; a blank line ends a stack.  With a `command`, drops
    other names."""
    samples, is_named = [], True
    with open(path, errors='surrogateescape', newline='\n') as file:
        for line in file:
            line = line.rstrip('\n')
            if not line.startswith('\t'):
                is_named = not command or line.lstrip().startswith(command + ' ')
            if line and not is_named:
                line = nameless(line)
            if line.startswith('\t') and FRAME.match(line) and samples:
                samples[-1][1].append(line)
            elif line:
                samples.append((line, []))
    return samples


def read_records(path):
    """Returns what the rules need of each raw sample: (is there a stack copy, its chain's
    words)."""
    samples = []
    with open(path, errors='surrogateescape', newline='\n') as file:
        for line in file:
            if re.match(r'^0x[0-9a-f]+ SAMPLE ', line):
                chain = re.search(r' callchain=\[([^]]*)\]', line)
                words = [int(word, 16) for word in chain.group(1).split()] if chain else []
                samples.append((' stack=' in line, words))
    return samples


def split(frame):
    """Returns (address, name, offset, object)."""
    address, name, where = FRAME.match(frame).groups()
    symbol, plus, offset = name.rpartition('+0x')
    return address, symbol if plus else name, offset if plus else None, where


def named_by_the_call(perf, tally):
    """The return address begins a function: perf prints that name, tally the name of the calling
    function."""
    return perf[0] == tally[0] and perf[3] == tally[3] and perf[2] == '0'


def named_by_the_plt(perf, tally):
    """perf has no name, or a wrong one, for a slot of the linkage table or for their common
    target."""
    return (perf[0] == tally[0] and perf[3] == tally[3] and
            (tally[1].endswith('@plt') or tally[1] in ('.plt', '.plt.got', '.plt.sec')) and
            (perf[1] == '[unknown]' or perf[1].endswith('@plt')))


def named_by_the_innermost(perf, tally):
    """Symbols are nested (labels in functions): perf uses the first in its tree, tally the
    innermost."""
    if perf[0] != tally[0] or perf[3] != tally[3] or not perf[2] or not tally[2]:
        return False
    return int(tally[2], 16) < int(perf[2], 16)


def in_memory_file(perf, tally):
    """Code in a memfd: perf treats it as a file and reads no perf map for it; tally treats it as a
    JIT's."""
    return (perf[3].startswith('/memfd:') and perf[1] == '[unknown]' and
            (tally[3] == perf[3] or re.match(r'/tmp/perf-\d+\.map$', tally[3])) and
            int(perf[0], 16) % 4096 == int(tally[0], 16) % 4096)


def frame_cause(perf, tally, is_leaf):
    perf, tally = split(perf), split(tally)
    if in_memory_file(perf, tally):
        return 'memfd'
    if named_by_the_plt(perf, tally):
        return 'plt'
    if not is_leaf and named_by_the_call(perf, tally):
        return 'call-site'
    if named_by_the_innermost(perf, tally):
        return 'nested'
    return None


def is_garbage(frame):
    """True for an address outside of all files, which an unwinder's wrong step finds."""
    where = split(frame)[3]
    return where == '[unknown]' or where.startswith(('[heap]', '[stack', '//anon', 'inlined'))


def emptied_by_a_marker(perf, tally, words):
    """perf drops a whole stack because of a word that only looks like a context marker."""
    return (not perf and tally and
            any(word >= MARKERS_START and word not in CONTEXTS for word in words))


def inline_cause(perf, tally, i):
    """A difference with inlined functions (perf runs addr2line).

    tally names the containing function by its symbol, perf by the debug information; if the two
    differ, perf calls it "inlined".  addr2line gives the innermost function of an address its
    symbol's name if the debug information has no mangled one, and does not mark a function inlined
    into itself.  It keeps the function's wrong name for later addresses."""
    p, t = split(perf), split(tally[i])
    if p[0] == t[0] and p[2] == t[2] and p[3] == 'inlined' and t[3] != 'inlined':
        return 'outer-name'
    is_innermost = i == 0 or tally[i - 1].split()[0] != t[0] or split(tally[i - 1])[3] != 'inlined'
    outer = next((frame for frame in tally[i:] if split(frame)[3] != 'inlined'), None)
    is_of_outer = t[3] == 'inlined' and perf == outer
    if is_of_outer and is_innermost:
        renamed.add((t[1], p[1]))
    return 'inner-name' if is_of_outer and ((t[1], p[1]) in renamed or t[1] == p[1]) else None


def cause_at(perf, tally, i):
    return frame_cause(perf, tally[i], i == 0) or inline_cause(perf, tally, i)


def frames_causes(perf, tally):
    """Returns the causes of all differences between two stacks of the same length, or None."""
    if len(perf) != len(tally):
        return None
    causes = [cause_at(frame, tally, i) for i, frame in enumerate(perf) if frame != tally[i]]
    return causes if all(causes) else None


def is_whole(stack):
    """True for a stack that reaches the program's start, which has no name in a stripped program."""
    names = [split(frame)[1] for frame in stack[-2:]]
    return names[-1] in OUTERMOST or names[0].startswith('__libc_start_main')


def unwound_further(perf, tally):
    """perf's unwinder skipped frames, strayed or stopped.

    tally's stack contains perf's frames in the same order.  After them, perf's may have one frame
    outside of all files, or a few arbitrary ones.  tally's goes on to the program's start, or as
    far as only a correct stack does, and perf's doesn't.  Returns the causes, or None."""
    causes, found, at = ['unwound-further'], 0, 0
    for frame in perf:
        same = next((i for i in range(at, len(tally)) if tally[i] == frame or cause_at(frame, tally, i)), None)
        if same is None:
            break
        if tally[same] != frame:
            causes.append(cause_at(frame, tally, same))
        found, at = found + 1, same + 1
    strayed = perf[found:]
    if len(tally) <= found:
        return None
    if len(strayed) <= 1 and all(map(is_garbage, strayed)):
        return causes
    goes_on = is_whole(tally) or len(tally) - found >= GOES_ON_MIN
    return causes if goes_on and not is_whole(perf) and len(strayed) <= STRAYED_MAX else None


def past_the_end(perf, tally):
    """After the last frame, perf prints one more without a mapping.

    It is a return address of 0, less one, or another word that is no return address.  Returns the
    causes, or None."""
    causes = frames_causes(perf[:-1], tally)
    is_end = perf and perf[-1].endswith(' [unknown] ([unknown])')
    return ['past-the-end'] + causes if is_end and causes is not None else None


def in_sigreturn(perf, tally):
    """The copy was made while the kernel restored the registers after a signal: some are old, some
    new."""
    return any(perf[:i] == tally[:i] and split(frame)[1] == '__restore_rt' and
               any(split(inner)[1] == '__x64_sys_rt_sigreturn' for inner in perf[:i])
               for i, frame in enumerate(perf))


def stack_causes(perf, tally, record):
    """Returns the causes of all differences between two stacks, or None."""
    if perf == tally:
        return []
    has_stack, words = record
    if emptied_by_a_marker(perf, tally, words):
        return ['marker']
    causes = frames_causes(perf, tally)
    if causes is None and has_stack:
        causes = unwound_further(perf, tally)
    if causes is None and has_stack:
        causes = past_the_end(perf, tally)
    if causes is not None:
        return causes
    if has_stack and in_sigreturn(perf, tally):
        return ['sigreturn']
    return None


def head_cause(perf, tally):
    """Returns the cause of a difference between the first lines of two samples, or None."""
    p, t = TIMER_FLAGS.match(perf), TIMER_FLAGS.match(tally)
    if p and t and p.group(1) == t.group(1):
        return 'timer-flags'
    p, t = LEAF.match(perf), LEAF.match(tally)
    if p and t and p.group(1) == t.group(1):
        frames = ['\t%s %s (%s)' % match.groups()[1:] for match in (p, t)]
        return frame_cause(frames[0], frames[1], True)
    return None


def compare(perf, tally, records):
    counts, unexplained = dict.fromkeys(CAUSES, 0), []
    # Samples that contain counts are printed once for each event of a group, but exist once in the
    # file.
    aligned = len(records) == len(tally)
    for i, ((perf_head, perf_frames), (tally_head, tally_frames)) in enumerate(zip(perf, tally)):
        causes = [head_cause(perf_head, tally_head)] if perf_head != tally_head else []
        more = stack_causes(perf_frames, tally_frames, records[i] if aligned else (False, []))
        if more is None or not all(causes):
            unexplained.append((i, [perf_head] + perf_frames, [tally_head] + tally_frames))
            continue
        for cause in causes + more:
            counts[cause] += 1
    return counts, unexplained


def main():
    command = sys.argv[4] if len(sys.argv) > 4 else None
    perf, tally, records = read_samples(sys.argv[1], command), read_samples(sys.argv[2], command), read_records(sys.argv[3])
    counts, unexplained = compare(perf, tally, records)
    for number, perf_lines, tally_lines in unexplained[:5]:
        print('sample %d differs without a cause' % number)
        for line in [line for line in perf_lines if line not in tally_lines][:8]:
            print('< ' + line)
        for line in [line for line in tally_lines if line not in perf_lines][:8]:
            print('> ' + line)
    if len(perf) != len(tally):
        print('perf printed %d samples, tally %d' % (len(perf), len(tally)))
    lines = sum(1 + len(frames) for _, frames in perf)
    print('samples %d lines %d %s unexplained %d' %
          (len(perf), lines, ' '.join('%s %d' % item for item in counts.items()), len(unexplained)))
    return 1 if unexplained or len(perf) != len(tally) or not perf else 0


if __name__ == '__main__':
    sys.exit(main())
