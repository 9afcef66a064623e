#!/bin/bash
# A recording contains the names of what was sampled.  Without the binary, debug files, perf map and
# kallsyms, every view prints the same bytes as on the machine where it was made.  `tally record`
# makes it, or `tally pack` from perf's.  TAP; $TALLY is the binary, $WORKLOAD the program of
# record_workload.c, $SHARES that of shares.c.
set -u
. "$(dirname "$0")/tap.sh"
trap 'rm -rf "$scratch"; rm -f "${map:-/nonexistent}"' EXIT
cd "$scratch" || exit 1
export HOME=$scratch # perf stores copies of recorded files there
export LC_ALL=C # the other machine has no locales

check() { if "${@:2}" >out 2>&1; then ok "$1"; else not_ok "$1"; fi; }
record() { timeout 60 "$TALLY" record -q "$@" >record.out 2>&1; }

if ! record -F 20000 -o first.data -- true; then
	echo "1..0 # SKIP can't record: $(head -c 200 record.out | tr '\n#' '  ')"
	exit 0
fi

# ---- another machine: tally and its libraries alone, at paths of their own

mkdir -p root/t/lib root/w root/proc root/dev
cp "$TALLY" root/t/tally
# tally loads libelf and libzstd when it needs them, and libelf needs libz.
{ ldd "$TALLY" | grep -o '/[^ ]*'; libraries | grep -oE '/[^ ]*/(libelf|libzstd|libz)\.so\.1$'; } | while read -r library; do cp -L "$library" root/t/lib/; done
loader=$(ls root/t/lib | grep '^ld-' | head -n 1)
: >root/dev/null
elsewhere() {
	timeout 100 unshare -m sh -c 'mount --bind /proc root/proc && mount --bind /dev/null root/dev/null &&
		mount --bind /dev/null root/proc/kallsyms && exec chroot root /t/lib/'"$loader"' --library-path /t/lib /t/tally "$@"' \
		elsewhere "$@"
}
hide=elsewhere
if ! elsewhere help >out 2>&1; then hide=; fi

VIEWS=('report' 'report -g' 'report -g callee --no-inline' 'report --json -g' 'report --sort dso,sym --no-children'
       'report --no-demangle' 'script' 'script --no-inline' 'fold' 'flamegraph -o -')

# carried NAME FILE: compares each view, here and there
carried() {
	if [ -z "$hide" ]; then skip "$1" "no namespaces or chroot for this user"; return; fi
	cp "$2" root/w/
	: >out
	for view in "${VIEWS[@]}"; do
		# shellcheck disable=SC2086
		timeout 100 "$TALLY" $view "$2" >here 2>here.err </dev/null || echo "$view fails here: $(head -n 1 here.err)" >>out
		# shellcheck disable=SC2086
		$hide $view "/w/$2" >there 2>there.err </dev/null || echo "$view fails there: $(head -n 1 there.err)" >>out
		sed -i "s,/w/$2,$2,g" there
		cmp -s here there || { echo "$view differs:"; diff here there | head -n 6 | cut -c -160; } >>out
		[ -s here ] || echo "$view prints nothing" >>out
	done
	rm -f "root/w/$2"
	if [ -s out ]; then not_ok "$1"; else ok "$1"; fi
}

# annotated NAME FILE: shows the code of its hottest functions, as here.
llvm=$(libraries | grep -o '/[^ ]*/libLLVM[-.0-9so]*$' | head -n 1)
if [ -n "$hide" ] && [ -n "$llvm" ]; then
	ldd "$llvm" | grep -o '/[^ ]*' | while read -r library; do cp -nL "$library" root/t/lib/; done
	cp -L "$llvm" root/t/lib/
fi
# The first copy of the hottest function: other ones may be too light for the recording to carry their code.
copy() { sed '/ of the [0-9,]* samples of /,/^$/d' | awk '{ blank = /^$/ ? blank + 1 : 0 } blank == 2 { exit } { print }'; }
annotate() { timeout 60 "$TALLY" annotate --stdio --no-source --all-hot 1 -i "$1" 2>annotate.err </dev/null | copy >here; }
annotated() {
	if [ -z "$hide" ] || [ -z "$llvm" ]; then skip "$1" "no namespaces or chroot for this user, or no libLLVM"; return; fi
	cp "$2" root/w/
	$hide annotate --stdio --no-source --all-hot 1 -i "/w/$2" 2>annotate.err </dev/null | copy >there
	rm -f "root/w/$2"
	diff here there >out && grep -q '^[ 0-9.%+~-]* [0-9a-f]\{4,\} ' there && ok "$1" || { cat annotate.err there >>out; not_ok "$1"; }
}

names() { "$TALLY" report --stdio --percent-limit 0 "$1" 2>/dev/null; }
# mark FILE: prints the position of the mark of tally's own section
mark() { LC_ALL=C grep -obUa TALLY255 "$1" | head -n 1 | cut -d: -f1; }
# without FILE: makes the same recording without the mark
without() { cp "$1" plain.data; printf '\0' | dd of=plain.data bs=1 seek="$(mark plain.data)" conv=notrunc 2>/dev/null; }

# ---- tally record

carried "a command of a few milliseconds" first.data

# In several files, each with its own names.
cp "$SHARES" many_files
record --switch-output=150ms -e cpu-clock -F 2000 -o parts -- ./many_files 500
mv many_files elsewhere_now
each() {
	halves=0
	[ "$(ls parts.* | wc -l)" -ge 2 ] || { echo "not several: $(ls)"; return 1; }
	for part in parts.*; do
		"$TALLY" report --stdio --no-inline --sort sym --no-children -i "$part" >named 2>&1
		grep -q 'half' named && halves=$((halves + 1)) && continue
		[ "$(sed -n 's/^\([0-9]*\) samples .*/\1/p' named)" -gt 20 ] && { echo "$part"; cat named; return 1; }
	done 2>/dev/null
	[ $halves -ge 2 ]
}
check "each file of a switched output has its own names" each
if [ -n "$hide" ] && record -F 20000 --no-pack -o root/w/no.data -- true; then
	"$TALLY" report --stdio root/w/no.data >here 2>/dev/null
	$hide report --stdio /w/no.data >there 2>/dev/null
	check "elsewhere the recording without its names looks different" sh -c '! cmp -s here there'
fi
check "the summary tells the cost of the names" grep -q 'for the names' <(timeout 60 "$TALLY" record -F 20000 -o again.data -- true 2>&1)
check "--no-pack leaves the names out" sh -c "'$TALLY' record -q -F 20000 --no-pack -o bare.data -- true >/dev/null 2>&1
	! LC_ALL=C grep -qUa TALLY255 bare.data"
if ! have perf; then
	skip "perf inject accepts a recording with tally's names" "no perf"
else
	injected() { timeout 60 perf inject "$@" -i first.data -o injected.data && timeout 60 perf script -i injected.data -F ip,sym >there; }
	perf script -i first.data -F ip,sym >here 2>/dev/null
	check "perf inject accepts a recording with tally's names" eval 'injected 2>out && [ -s here ] && cmp here there'
	check "perf inject -b accepts it" eval 'injected -b 2>out && cmp here there'
fi

cat >inlines.c <<'P'
#include <stdlib.h>
static volatile unsigned sink;
static inline __attribute__((always_inline)) void innermost(unsigned i) { sink += i * 2654435761u; }
static inline __attribute__((always_inline)) void middle(unsigned n) { for (unsigned i = 0; i < n; i++) innermost(i); }
__attribute__((noinline)) void outer(unsigned n) { middle(n); middle(n / 2); }
int main(int argc, char **argv) { for (int i = 0; i < 300; i++) outer(argc > 1 ? (unsigned)atoi(argv[1]) : 200000); }
P
if have cc && cc -O2 -g -fno-omit-frame-pointer -o inlines inlines.c 2>out; then
	record -F 4000 -o inlines.data -- ./inlines
	carried "inlined functions" inlines.data
	annotate inlines.data
	annotated "their code" inlines.data
	"$TALLY" pack -q inlines.data
	annotated "... packed again" inlines.data
	"$TALLY" script --stdio inlines.data >before
	without inlines.data
	"$TALLY" script --stdio plain.data >plain
	check "the recording's names are the same as the files'" cmp before plain
	check "the inlined functions are among them" grep -q 'innermost.*(inlined)' before
	echo 'int main(void) { return 1; }' >other.c
	cc -o inlines other.c
	"$TALLY" script --stdio inlines.data >after
	check "a program that was rebuilt since has its old names" cmp before after
	rm inlines
	cat >mangled.cc <<'P'
#include <map>
namespace shop { struct till { std::map<int, int> sold; __attribute__((noinline)) void sell(int n) { for (int i = 0; i < n; i++) sold[i % 997]++; } }; }
int main() { shop::till till; for (int i = 0; i < 60; i++) till.sell(100000); }
P
	if have c++ && c++ -O1 -g -o mangled mangled.cc 2>out; then
		record -F 2000 -o mangled.data -- ./mangled
		rm mangled
		carried "C++" mangled.data
		check "names are demangled" sh -c "'$TALLY' report --percent-limit 0 --stdio mangled.data | grep -q 'shop::till::sell'"
		check "or mangled with --no-demangle" \
			sh -c "'$TALLY' report --percent-limit 0 --no-demangle --stdio mangled.data | grep -q '_ZN4shop4till4sellEi'"
	fi
else
	skip "inlined functions" "no C compiler"
fi

cp "$WORKLOAD" workload && record -F 2000 -a -o system.data -- ./workload 3000 && rm workload &&
	carried "the whole system: the kernel and its modules" system.data
if record -a -e kmem:kfree,kmem:kmalloc -c 10 -o kmem.data -- ls /; then
	carried "kernel functions that tracepoints tell of" kmem.data
fi
if have python3; then
	record -F 2000 -o python.data -- python3 -c 'print(sum(len(str(i * i)) for i in range(600000)))'
	carried "python3" python.data
	annotate python.data
	annotated "its code" python.data
fi
if have node; then
	echo 'let s = 0; for (let i = 0; i < 3e7; i++) s = (s * 31 + i) % 1000003; function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); } console.log(s, f(30));
		console.log("pid " + process.pid)' >program.js
	record -F 2000 -o node.data -- node --perf-basic-prof program.js
	map=/tmp/perf-$(sed -n 's/^pid //p' record.out).map
	names node.data >before
	rm -f "$map"
	carried "node, with the perf map gone" node.data
	check "functions have names from the perf map that existed while recording" grep -q 'program.js' before
fi

if have node; then
	record -F 2000 -o dump.data -- sh -c 'node --perf-prof program.js'
	if ls jit-*.dump >/dev/null 2>&1; then
		annotate dump.data
		annotated "what a JIT made, its code too" dump.data
		rm -f jit-*.dump
		carried "node, with its dump gone" dump.data
		check "functions have names from the JIT dump that existed while recording" sh -c "'$TALLY' report --percent-limit 0 --stdio dump.data | grep -q program.js"
	else
		skip "node, after its dump was removed" "this node writes none"
	fi
fi

# ---- tally pack

if have perf && timeout 60 perf record -q -g -F 2000 -o perf.data -- sh -c 'xz --version; ls -lR /usr/include 2>/dev/null | head -n 3000' >out 2>&1; then
	cp perf.data untouched.data
	chmod 640 perf.data
	"$TALLY" report -g --stdio perf.data >unpacked 2>/dev/null
	check "a recording of perf's can be packed" "$TALLY" pack perf.data
	"$TALLY" report -g --stdio perf.data >packed 2>/dev/null
	check "and looks as before" cmp unpacked packed
	check "the file keeps its mode" test "$(stat -c %a perf.data)" = 640
	check "no other file is left beside it" sh -c '! ls -a | grep -q "^\.tally-"'
	carried "perf's recording, packed" perf.data
	for view in 'script' 'report --stdio' 'report --header-only'; do
		# shellcheck disable=SC2086
		perf $view -i untouched.data 2>err1 | grep -v '^# (Tip' >perf1
		# shellcheck disable=SC2086
		perf $view -i perf.data 2>err2 | grep -v '^# (Tip' >perf2
		sed -i '/^# captured on/d; /^# data offset/d; /^# feat offset/d' perf1 perf2
		cmp perf1 perf2 >out && cmp err1 err2 >>out && [ -s perf1 ] && ok "perf $view prints the same for a packed file" ||
			not_ok "perf $view prints the same for a packed file"
	done
	perf script -i first.data >perf1 2>err1
	without first.data
	perf script -i plain.data >perf2 2>err2
	check "perf prints the same for a packed recording of tally's" sh -c 'cmp perf1 perf2 && cmp err1 err2 && test -s perf1'
	"$TALLY" pack -q untouched.data -o other.data
	check "-o leaves the original unchanged" sh -c "! cmp -s untouched.data other.data && cmp perf.data other.data"
	cp perf.data twice.data
	"$TALLY" pack -q twice.data
	check "packing again changes nothing" cmp perf.data twice.data
	if timeout 60 perf record -q -z -g -F 5000 -o packed.zst.data -- ls -lR /usr/include >out 2>&1; then
		"$TALLY" pack -q packed.zst.data
		carried "perf's compressed recording, packed" packed.zst.data
	fi
	head -c 4000000 "$TALLY" >some
	if timeout 60 perf record -q --call-graph dwarf -F 2000 -o dwarf.data -- xz -k -0 -c some >out 2>&1; then
		"$TALLY" pack -q dwarf.data
		carried "stacks that are unwound when they are read" dwarf.data
	fi
	if record --keep-stacks --call-graph dwarf -F 2000 -o kept.data -- xz -k -0 -c some; then
		carried "and of tally's that kept them" kept.data
	fi
else
	skip "perf's recordings" "perf can't record here"
fi
if timeout 60 "$TALLY" record -q -F 20000 -o - -- true >stream.data 2>out; then
	"$TALLY" script --stdio stream.data >before 2>/dev/null
	check "a stream saved in a file can be packed" "$TALLY" pack stream.data -o file.data
	"$TALLY" script --stdio file.data >after 2>/dev/null
	check "and becomes a file with the same samples" cmp before after
	carried "and carries its names" file.data
fi

# ---- what goes wrong

cp first.data damaged.data
# Damages the end of each part (docs/file-format.md): the checksum of its zstd frame.
python3 - damaged.data <<'P'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
part = data.rindex(b"TALLY255") + 16
while part < len(data):
    part += 24 + int.from_bytes(data[part + 8:part + 16], "little")
    data[part - 1] ^= 0xff
open(sys.argv[1], "wb").write(data)
P
"$TALLY" script --stdio first.data >before
"$TALLY" script --stdio damaged.data >after 2>err
check "a warning says that the packed names are damaged" grep -q 'the recording.s own names are damaged' err
check "and the names then come from the files" cmp before after
check "a missing recording is an error" sh -c "! '$TALLY' pack nothing.data 2>err && grep -q 'nothing.data.*o such file' err"
echo text >text.data
mkfifo fifo
check "a device or a FIFO is not replaced" sh -c "! '$TALLY' pack first.data -o fifo 2>err && [ -p fifo ] &&
	grep -q 'not a regular file' err && ! '$TALLY' pack first.data -o - 2>err && grep -q 'not a pipe' err"
check "text is refused and stays unchanged" sh -c "! '$TALLY' pack text.data 2>err && grep -q text text.data"
mkdir -p closed && cp first.data closed/ && chmod 500 closed
if [ "$(id -u)" != 0 ]; then
	check "a folder that can't be written is an error" sh -c "! '$TALLY' pack closed/first.data 2>err && grep -q 'with -o' err"
fi
chmod 700 closed
echo "1..$number"
