#!/bin/bash
# The kernel wrote over its own code during the recording (TEXT_POKE): annotate shows the final
# code, and code that the kernel made meanwhile.  The recording is of another kernel, whose vmlinux
# is made here.  TAP; $TALLY is the binary.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export HOME=$scratch XDG_CACHE_HOME=$scratch/cache PAGER=cat LC_ALL=C TZ=UTC

[ "$(uname -m)" = x86_64 ] || skip_all "it is x86-64's code"
for tool in as ld python3; do
	have $tool || skip_all "there is no $tool"
done

# The place of a tracepoint (a nop of 5 bytes) in a function of 16, and its jump target.
cat >vmlinux.s <<'S'
	.globl _text, traced, aside
	.type traced, @function
	.type aside, @function
_text:	.skip 256, 0x90
traced:	.byte 0x0f, 0x1f, 0x44, 0, 0
	.skip 10, 0x90
	ret
	.size traced, 16
aside:	.skip 15, 0x90
	ret
	.size aside, 16
S
as -o vmlinux.o vmlinux.s && ld -Ttext=0xffffffff81000000 -e _text -o vmlinux vmlinux.o 2>out || skip_all "no vmlinux can be made here"

# recording.py FILE WORD…: the events in order, a microsecond apart.
cat >recording.py <<'P'
import sys
sys.path.insert(0, sys.argv[1])
from make_recording import *
MOVED, PIDS = 0x200000, u32(77, 77) # by KASLR
TEXT, TRACED, ASIDE, MADE = (0xffffffff81000000 + MOVED + at for at in (0, 256, 272, 0x3f000000))
NOP, JUMP = bytes([0x0f, 0x1f, 0x44, 0, 0]), bytes([0xe9]) + u32(ASIDE - TRACED - 5)
CODE = bytes([0x53, 0x48, 0x89, 0xfb, 0x5b, 0xc3]) # push, mov, pop, ret
time = 1000
def trailer(): return PIDS + u64(time)
def sample(ip): return record("SAMPLE", u64(ip) + PIDS + u64(time, 1000), KERNEL)
def poke(address, old, new, misc=KERNEL):
    body = u64(address) + u16(len(old), len(new)) + old + new
    return record("TEXT_POKE", body + bytes(-len(body) % 8) + trailer(), misc)
def made(flags): return record("KSYMBOL", u64(MADE) + u32(len(CODE)) + u16(2, flags) + padded("ftrace_trampoline") + trailer())
WORDS = {
    "sample": lambda: [sample(TRACED + 5)] * 4,
    "on": lambda: [poke(TRACED, NOP, JUMP)], "off": lambda: [poke(TRACED, JUMP, NOP)],
    "guest": lambda: [poke(TRACED, NOP, JUMP, 4)],
    "beyond": lambda: [poke((1 << 64) - 3, NOP, JUMP), poke(TRACED - 3, b"", bytes(4)), poke(TRACED + 15, b"", b"\xcc" * 40)],
    "cut": lambda: [record("TEXT_POKE", u64(TRACED) + u16(5, 60000) + NOP + JUMP + bytes(6), KERNEL)],
    "make": lambda: [made(0), poke(MADE, b"", CODE)], "part": lambda: [made(0), poke(MADE, b"", CODE[:-1])],
    "run": lambda: [sample(MADE + 4)] * 4, "take": lambda: [poke(MADE, CODE, b""), made(1)], "name": lambda: [made(0)],
}
kernel = u32(-1, 0) + u64(TEXT, 0x1000, TEXT) + padded("[kernel.kallsyms]_text")
event = Event("cycles", [5], type=0, sample_type=IP | TID | TIME | PERIOD, flags=SAMPLE_ID_ALL | MMAP | COMM)
records = [record("MMAP", kernel + PIDS + u64(0), KERNEL), record("COMM", PIDS + padded("poked") + trailer())]
for word in sys.argv[3:]:
    time += 1000
    records += WORDS[word]()
write_file(sys.argv[2], [event], records, {**common_features([event]), SPECIAL["osrelease"]: text("6.99-poked")})
P
make() { python3 recording.py "$here" "$@"; }
annotate() { timeout 60 "$TALLY" annotate --stdio --no-source --vmlinux vmlinux "$@" >out 2>&1; }
# Prints the instruction at the place, and how many bytes were overwritten, by annotate.
place() { sed -n 's/^.*ffffffff81200100 *//p' out | awk '{ print $1 }'; }
said() { sed -n 's/.*the kernel changed \([0-9,]*\) byte.*/\1/p' out | tr -d ,; }
shows() { # WHAT BYTES: without BYTES, nothing is reported
	[ "$(place)" = "$1" ] && [ "$(said)" = "${2-}" ]
}

make plain.data sample
annotate -i plain.data traced
if grep -q libLLVM out; then
	skip_all "there is no libLLVM"
fi
check "code that the kernel did not change comes from its file" shows nopl
make on.data sample on sample
annotate -i on.data traced
check "changed code is shown, and a line says so" shows jmp 5
check "… with the target of its jump" grep -q 'jmp .*aside' out
check "… as JSON" grep -q '"patched_bytes": *5' <("$TALLY" annotate -j --vmlinux vmlinux -i on.data traced 2>out)
make off.data on sample off sample
annotate -i off.data traced
check "a place that was changed twice has the last content" shows nopl 5
annotate -i off.data --time ,0.000003 traced
check "… or the content at the end of the selected time" shows jmp 5
annotate -i on.data --time ,0.000002 traced
check "… before the first change it is not shown as changed" shows nopl
make guest.data guest sample
annotate -i guest.data traced
check "a guest's kernel is not the host's" shows nopl
make beyond.data on beyond cut sample
annotate -i beyond.data traced
check "at a function's edges only its own bytes count; a damaged record does no harm" shows addb 6
"$TALLY" pack -q --vmlinux vmlinux -i on.data -o packed.data 2>out
timeout 60 "$TALLY" annotate --stdio --no-source -i packed.data traced >out 2>&1
check "a packed recording contains the changed code" shows jmp 5

trampoline() { annotate -i "$1" ftrace_trampoline; [ "$(sed -n 's/^.*ffffffffc0200[0-9a-f]*  *//p' out | awk '{ printf "%s ", $1 }')" = "pushq movq popq retq " ]; }
make made.data make run
check "code that the kernel made, from the records about it" trampoline made.data
make taken.data name run take
check "… or from the record of its removal" trampoline taken.data
make part.data part run
annotate -i part.data ftrace_trampoline
check "… not shown if the records have only a part" grep -q 'the kernel generated it' out
check "samples in that code have its name" grep -q 'ftrace_trampoline+0x4' <("$TALLY" script -i made.data 2>out)

if have perf; then
	for file in on off made taken; do
		perf script --vmlinux vmlinux --show-text-poke-events -i $file.data 2>/dev/null | grep -v '^$' | sed 's/\[kernel.kallsyms\]/kernel/' | grep -P 'PERF_RECORD|^\t' >theirs
		"$TALLY" script --vmlinux vmlinux --show-text-poke-events -i $file.data 2>/dev/null | grep -P 'PERF_RECORD|^\t' | sed 's/\[kernel.kallsyms\]/kernel/' >ours
		diff theirs ours >out && grep -q TEXT_POKE ours
		check "perf script shows the same for $file.data"
	done
else
	skip "perf script shows the same" "there is no perf"
fi
done_testing
