#!/bin/bash
# Recordings of machines with the other byte order, as ../foreign/reencode.py writes them.  A
# re-encoded recording counts as valid if perf prints the same as for the original.  Then tally must
# do so too, for all records.  TAP; $TALLY is the binary, $WORKLOAD the program of
# record_workload.c, $SOURCE the sources.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
reencode="$here/../foreign/reencode.py"
cd "$scratch" || exit 1
export HOME=$scratch # perf stores copies of recorded files there

check() { if "${@:2}" >out 2>&1; then ok "$1"; else not_ok "$1"; fi; }

printed() { timeout 60 "$TALLY" script --stdio --no-inline -i "$1" </dev/null; }
# Removes what differs between files: positions of records, raw tracepoint data, and a pipe's extra
# records at the beginning.
records() {
	timeout 60 "$TALLY" script --stdio --records -i "$1" </dev/null |
		sed -E 's/^0x[0-9a-f]+ //; s/ raw\(([0-9]+)\)=[0-9a-f…]*/ raw(\1)/' |
		grep -vE '^(HEADER_|EVENT_UPDATE|COMPRESSED)'
}
perf_prints() { timeout 60 perf script --no-inline -i "$1" </dev/null; }

same_for_perf() { perf_prints "$1" >perf.turned 2>/dev/null && cmp perf.txt perf.turned; }
same_for_tally() {
	printed "$1" >tally.turned && cmp tally.txt tally.turned && records "$1" >records.turned && cmp records.txt records.turned
}
as_perf() {
	timeout 60 "$TALLY" script --stdio --records -i "$1" >all.txt </dev/null
	"$here/compare_script.py" perf.turned tally.turned all.txt
}

# turn NAME FILE: makes all comparisons of one recording
turn() {
	perf_prints "$2" >perf.txt 2>/dev/null
	printed "$2" >tally.txt
	records "$2" >records.txt
	python3 "$reencode" "$2" turned 2>out || { not_ok "$1: re-encoding fails"; return; }
	if [ ! -s perf.txt ] || ! same_for_perf turned >out 2>&1; then not_ok "$1: perf reads it differently"; return; fi
	check "$1: the big-endian copy shows the same as the original" same_for_tally turned
	check "$1: the big-endian copy, as perf prints it" as_perf turned
	python3 "$reencode" --pipe "$2" turned
	check "$1: a big-endian pipe" same_for_tally turned
	rm -f turned
}

# compare NAME perf-record-arguments…
compare() {
	name=$1
	shift
	if timeout 60 perf record --no-bpf-event -q -o perf.data "$@" >record.out 2>&1 </dev/null; then
		turn "$name" perf.data
	else
		skip "$name" "perf can't record it: $(head -c 100 record.out | tr '\n#' '  ')"
	fi
}

# ---- recordings of Debian's perf 6.1 for arm64, as that printed them in its guest machine ------------------
# The program is found by its build-id, as perf keeps it; the guest's vdso is not here, and this machine's is another.
arm64="$here/../foreign/arm64"
keep_program() {
	id=$(python3 -c '
import sys
data = open(sys.argv[1], "rb").read()
at = data.index(b"\4\0\0\0\24\0\0\0\3\0\0\0GNU\0") + 16
print(data[at:at + 20].hex())' "$1") && mkdir -p ".debug/.build-id/${id:0:2}/${id:2}" && cp "$1" ".debug/.build-id/${id:0:2}/${id:2}/elf"
}
as_in_the_guest() {
	printed "$arm64/$1.perfdata" >tally.txt 2>warnings && sed 's/__kernel_rt_sigreturn+0x0 (\[vdso\])/[unknown] ([vdso])/' "$arm64/$1.txt" | diff - tally.txt
}
without_the_program() {
	cp "$arm64/$1.perfdata" packed && timeout 60 "$TALLY" pack packed >out 2>&1 && printed packed >here.txt 2>warnings &&
		HOME=$scratch/none XDG_CACHE_HOME=$scratch/none printed packed >elsewhere.txt 2>warnings && cmp here.txt elsewhere.txt &&
		grep -A 1 '	 *[0-9a-f]* spin' here.txt | grep -q 'half+0xf '
}
# perf -F +iregs,+uregs: two lists, "ABI:2 x0:0x5 …", with the names padded
same_registers() {
	sed -E 's/^[^A]*ABI:/ABI:/; s/ +/ /g; s/ $//' "$1" | grep -o 'ABI:.*' | sed 's/ ABI:/\nABI:/' | sort >perf.registers
	grep -oE "regs_(user|intr)\(abi [0-9]+\)=\[[^]]*" "$2" | sed -E 's/regs_[a-z]+\(abi ([0-9]+)\)=\[/ABI:\1 /' | sort >tally.registers
	[ -s perf.registers ] && diff perf.registers tally.registers
}
registers_as_in_the_guest() {
	timeout 60 "$TALLY" script --stdio --records -i "$arm64/registers.perfdata" >records.txt && same_registers "$arm64/registers.txt" records.txt
}
if have python3 && keep_program "$arm64/walk-frames" && keep_program "$arm64/leaf-calls"; then
	check "arm64: frame-pointer stacks go through signal handlers" as_in_the_guest frames
	check "arm64: the caller of a leaf function comes from the link register" as_in_the_guest leaf
	check "arm64: a packed recording shows such callers without the program" without_the_program leaf
	check "arm64: cycles and instructions of a hardware PMU" as_in_the_guest counters
	check "arm64: a group whose leader samples" as_in_the_guest group
	check "arm64: tracepoints" as_in_the_guest tracepoints
	check "arm64: registers" registers_as_in_the_guest
else
	skip "arm64" "no python3"
fi

if ! have perf || ! have python3 || ! perf record -q -o perf.data -e cpu-clock true >out 2>&1; then
	skip "the other byte order" "needs perf, which may record, and python3"
	done_testing
fi

compare "frame pointers" -e cpu-clock -g -F 299 "$WORKLOAD" spin
compare "stack copies" -e cpu-clock --call-graph dwarf,4096 -F 199 "$WORKLOAD" spin
compare "tracepoints" -a -e sched:sched_switch,sched:sched_wakeup,sched:sched_process_exec sh -c 'ls >/dev/null; sleep 0.05'
compare "system calls" -e syscalls:sys_enter_openat,raw_syscalls:sys_enter true
compare "a group's values" -e '{cpu-clock,page-faults,minor-faults}:S' -F 299 "$WORKLOAD" faults
compare "page faults with their addresses and data sources" -e page-faults -c 1 -d -W "$WORKLOAD" faults 0.005
compare "namespaces, cgroups, switches" --namespaces --all-cgroups --switch-events -e cpu-clock -F 199 "$WORKLOAD" threads
compare "registers" -e cpu-clock --user-regs=ip,sp,bp -I -F 199 "$WORKLOAD" spin
compare "build-ids in map records" --buildid-mmap -e cpu-clock -g -F 299 "$WORKLOAD" spin
compare "counts at a thread's end" -s -e cpu-clock -F 199 "$WORKLOAD" threads
compare "several events" -e task-clock,page-faults,context-switches -g -F 299 "$WORKLOAD" faults

# ---- other machines ---------------------------------------------------------------------------------------
# What perf calls each bit of a mask of registers, by the machine that the recording names.
registers_as_perf() {
	python3 "$reencode" "${@:2}" --arch "$1" perf.data turned || return 1
	timeout 60 perf script -F ip,uregs -i turned 2>/dev/null </dev/null >perf.txt
	timeout 60 "$TALLY" script --stdio --records -i turned >records.txt && same_registers perf.txt records.txt
}
if perf record -q -o perf.data -e cpu-clock --user-regs=ip,sp,bp -F 199 "$WORKLOAD" spin >out 2>&1; then
	check "registers of x86_64" registers_as_perf x86_64 --little --registers 0xffffffff00ff0fff
	check "registers of i686" registers_as_perf i686 --little --registers 0xffff --abi 1
	check "registers of aarch64" registers_as_perf aarch64 --little --registers 0x4001ffffffff
	check "registers of armv7l" registers_as_perf armv7l --little --registers 0xffff --abi 1
	check "registers of riscv (perf 6.1 does not know riscv64 by its name)" registers_as_perf riscv --little --registers 0xffffffff
	check "registers of ppc64le" registers_as_perf ppc64le --little --registers 0x1fffffffffff
	check "registers of ppc64, big-endian" registers_as_perf ppc64 --registers 0x1fffffffffff
	check "registers of s390x, big-endian" registers_as_perf s390x --registers 0x3ffffffff
else
	skip "registers of other machines" "perf can't record registers"
fi

# This machine's kernel, vdso and programs name nothing in a recording of another.
nothing_of_this_machine() {
	python3 "$reencode" "${@:2}" --arch "$1" perf.data turned && HOME=$scratch/none XDG_CACHE_HOME=$scratch/none printed turned >tally.turned 2>warnings || return 1
	cat warnings
	grep -q . tally.turned && ! grep -E '\+0x[0-9a-f]+ \(' tally.turned || return 1
	# A warning is required only if the recording has samples in the kernel.
	! grep -qF '([kernel.kallsyms])' tally.turned || grep -q 'of another kernel' warnings
}
told_once() {
	python3 "$reencode" "${@:3}" perf.data turned && printed turned >tally.turned 2>warnings
	cat warnings
	[ -s tally.turned ] && [ "$(grep -c "$1" warnings)" = "$2" ]
}
perf record -N -q -o perf.data -e cpu-clock --call-graph dwarf,4096 -F 999 "$WORKLOAD" faults >out 2>&1
check "s390x: no file of this machine is used" nothing_of_this_machine s390x
check "riscv64: no file of this machine is used" nothing_of_this_machine riscv64 --little
cp perf.data faults.data
perf record -N -q -o perf.data -e cpu-clock --call-graph dwarf,4096 -F 999 "$WORKLOAD" clock >out 2>&1
check "s390x: … nor its vdso, even with the recorded build-id" nothing_of_this_machine s390x
check "riscv64: … nor its vdso, even with the recorded build-id" nothing_of_this_machine riscv64 --little
mv faults.data perf.data
check "riscv64: one warning says that stacks are not unwound" told_once 'copied stacks are of another architecture and not unwound' 1 --little --arch riscv64
check "one warning says that stacks of 32-bit programs are not unwound" told_once 'are of 32-bit programs' 1 --little --arch aarch64 --abi 1
check "recordings of this machine give no such warning" told_once 'are not unwound' 0 --little

# ---- what can't be recorded here ---------------------------------------------------------------------------
made() { "$here/make_recording.py" "$1" perf.data && python3 "$reencode" perf.data turned; }
branches_as_perf() {
	made "$1" || return 1
	perf script --no-inline -F +brstack -i perf.data >perf.txt 2>/dev/null
	perf script --no-inline -F +brstack -i turned 2>/dev/null | cmp perf.txt - || return 1
	timeout 60 "$TALLY" script --stdio --no-inline -F +brstack -i turned | cmp perf.txt - && [ -s perf.txt ]
}
described() {
	timeout 60 "$TALLY" script --stdio "$1" "$2" 2>&1 | sed -E 's/^0x[0-9a-f]+ //' |
		grep -vE '^# (captured on|data offset|data size|feat offset)'
}
described_alike() {
	made "$1" && described --header-only perf.data >as_it_was && described --header-only turned | diff as_it_was - &&
		described --records perf.data >as_it_was && described --records turned | diff as_it_was - && [ -s as_it_was ]
}
check "branch stacks, with their flags" branches_as_perf branch_stacks
check "branch stacks of calls" branches_as_perf lbr
for kind in features_old features_newer features_unknown tool_file side_events deferred_lost; do
	check "information about the recording: $kind" described_alike $kind
done

# ---- how else a recording may be encoded ------------------------------------------------------------------
perf record -q -o perf.data -e cpu-clock,page-faults -g -F 299 "$WORKLOAD" faults >out 2>&1
printed perf.data >tally.txt
records perf.data >records.txt
encoded() { python3 "$reencode" "${@:2}" perf.data turned 2>out && check "$1" same_for_tally turned; }
encoded "the features' bits of a 32-bit machine" --words32
encoded "the first format" --first --little
encoded "the first format, big-endian" --first
encoded "a pipe of the first format" --first --little --pipe
encoded "a big-endian pipe of the first format" --first --pipe
if have zstd; then
	encoded "compressed" --compress --little
	encoded "compressed, big-endian" --compress
	encoded "a compressed big-endian pipe" --compress --pipe
else
	skip "compressed recordings" "no zstd"
fi
# Fields that an old kernel's attribute lacks are zero; fields that a later kernel adds are skipped.
for size in 64 72 80 96 104 112 120 128 136 144 200; do
	[ $size = 64 ] || [ $size = 200 ] && encoded "attributes of $size bytes" --little --attr-size $size
	encoded "attributes of $size bytes, big-endian" --attr-size $size
	[ $size = 104 ] || [ $size = 200 ] && encoded "attributes of $size bytes, down a big-endian pipe" --attr-size $size --pipe
done
done_testing
