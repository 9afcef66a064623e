#!/bin/bash
# Recordings as other or older recorders leave them: perf's, changed by ../foreign/patch.py.  If
# perf reads them correctly, tally must print the same; if not, the same as before the change.  TAP;
# $TALLY is the binary, $WORKLOAD the program of record_workload.c.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
patch="$here/../foreign/patch.py"
cd "$scratch" || exit 1
export HOME=$scratch # perf stores copies of recorded files there

have perf && have python3 && perf record -q -o perf.data -e cpu-clock true >out 2>&1 ||
	skip_all "needs perf, which may record, and python3"

script() { timeout 60 "$TALLY" script --stdio --no-inline -i "$1" 2>err </dev/null; }
record() { timeout 60 perf record --no-bpf-event -q -o "$@" >out 2>&1 </dev/null; }
as_before() { # CHANGED [UNCHANGED]
	script "${2:-perf.data}" >before.txt
	script "$1" >after.txt
	cp err warnings
	diff before.txt after.txt >out && [ -s after.txt ]
}

# ---- build-ids: 20 bytes, zeros behind shorter ones
if have gcc; then
	cat >spin.c <<-'END'
		#include <stdlib.h>
		__attribute__((noinline)) unsigned inner(unsigned n) { volatile unsigned s = n; while (n--) s = s * 31 + (s >> 3); return s; }
		int main(int count, char **words) { unsigned s = 0; for (int i = atoi(words[count - 1]); i; i--) s += inner(10000); return s == 7; }
	END
	for id in 0x0102030405060708 md5 sha1; do
		gcc -O1 -Wl,--build-id=$id -o spin spin.c 2>out && record perf.data -e cpu-clock ./spin 5000
		"$patch" --unsized perf.data changed.data
		rm -rf .debug
		check "a build-id ($id) without its size" as_before changed.data
		rm -rf .debug
		check "… gives names to functions" eval 'as_before changed.data && grep -q " inner+" after.txt'
		gcc -O1 -DOTHER -g -Wl,--build-id=0x010203040506070899 -o spin spin.c 2>out
		script changed.data >after.txt
		check "… and another build's names are not used" eval '! grep -q " inner+" after.txt'
	done
else
	skip "build-ids without their size" "no gcc"
fi

# ---- the first format, PERFFILE
record perf.data -e cpu-clock "$WORKLOAD" spin
"$here/../foreign/reencode.py" --little --first perf.data first.data
"$here/../foreign/reencode.py" --first perf.data turned.data
for command in fold flamegraph diff; do
	for file in first turned; do
		arguments=$file.data
		[ $command = diff ] && arguments="perf.data $file.data"
		[ $command = flamegraph ] && arguments="-o out.svg $file.data"
		timeout 60 "$TALLY" $command $arguments >out 2>err </dev/null
		check "$command reads the first format ($file)"
	done
done
timeout 60 "$TALLY" fold - <first.data >out 2>err
check "… and through a pipe" diff out <("$TALLY" fold perf.data 2>err)

# ---- a recorder that was killed
record perf.data -g -e cpu-clock "$WORKLOAD" spin
"$patch" --without 2 --without 4 --without 12 perf.data without.data
"$patch" --killed perf.data killed.data
check "an unfinished file is read to its end" as_before killed.data without.data
check "… and a message says that it is unfinished" grep -q 'was it killed?' warnings
head -c $(($(stat -c %s killed.data) - 20)) killed.data >torn.data
script torn.data >after.txt
check "… also if it ends within a record" test "$(grep -c . after.txt)" -gt 100
head -c "$(od -An -t u8 -j 40 -N 8 killed.data | tr -d ' ')" killed.data >none.data
for command in report script fold; do
	timeout 60 "$TALLY" $command none.data >out 2>&1
	check "$command: a message says that there are no samples since the recorder was killed" grep -q 'killed' out
done

# ---- formats of tracepoints inside a record
if record perf.data -e sched:sched_process_exec,sched:sched_process_exit sh -c true; then
	for how in inside record; do
		"$patch" --tracing-$how perf.data changed.data
		check "tracepoints' formats $how" as_before changed.data
		check "… without a message about damage" eval '! grep -q damaged warnings'
	done
else
	skip "tracepoints' formats inside a record" "perf can't record tracepoints"
fi

# ---- times of samples alone: what programs were called, and had mapped, at the time of a sample
cp "$WORKLOAD" ./program
echo 'i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done; exec ./program spin' >run.sh
# On one CPU: if a task comes from another CPU, its name there is unknown until that CPU's ring is
# read.
if taskset -c 0 timeout 60 perf record --no-bpf-event -q -o perf.data -e cpu-clock -F 1999 sh run.sh >out 2>&1; then
	"$patch" --untimed perf.data changed.data
	check "records without times stay in order among the samples of their ring" as_before changed.data
	timeout 60 perf script --no-inline -F comm,tid,time,event,ip,dso -i changed.data 2>/dev/null >perf.txt
	timeout 60 "$TALLY" script --stdio --no-inline -F comm,tid,time,event,ip,dso -i changed.data >out 2>err
	check "… as in perf" diff perf.txt out
	check "… both programs' names are there" eval 'grep -q "^ *sh " out && grep -q "^ *program " out'
	"$TALLY" report --stdio --sort comm changed.data >out 2>err
	check "… in reports, too" eval 'grep -q "% *sh$" out && grep -q "% *program$" out'
else
	skip "only samples have times" "no recording, or no taskset"
fi

# ---- addresses of programs, where the kernel is said to run
"$here/make_recording.py" user_in_kernel odd.data
timeout 60 perf script -F comm,time,event,ip,sym,dso -i odd.data >perf.txt 2>/dev/null
timeout 60 "$TALLY" script --stdio -F comm,time,event,ip,sym,dso -i odd.data >out 2>err
check "addresses of programs in samples of kernel mode are not taken for the kernel's" diff perf.txt out
timeout 60 "$TALLY" report --stdio --sort dso odd.data >out 2>err
check "… in reports, too" eval '! grep -q "kernel.kallsyms" out && grep -q "\[unknown\]" out'

# ---- MMAP2 before it had protection and flags, which perf 6.1 takes the name's first bytes for
"$here/make_recording.py" early_mmap2 early.data
"$here/../foreign/reencode.py" early.data early-turned.data
for file in early.data early-turned.data; do
	"$TALLY" script --stdio -F ip,dso $file 2>err | tr -s ' \n' ' ' >out
	check "MMAP2 without the protection ($file)" test "$(cat out)" = \
		" 600789 (/bin/later) 400123 (/bin/early-program) 7f0000000456 ([vdso]) "
done
"$TALLY" script --records early.data 2>err >out
check "… as --records shows" grep -q 'MMAP2 .*generation=0 prot=5 flags=0x0 file=/bin/early-program' out

# ---- simpleperf's symbols
"$here/make_recording.py" simpleperf phone.data
"$TALLY" script --stdio -F ip,sym,symoff,dso phone.data 2>err | sed 's/^ *//' >out
cat >expected <<-'END'
	ffffff8008080123 el0_irq+0x23 ([kernel.kallsyms])
	7100000110 inflate+0x10 (/system/lib64/libz.so)
	7100000204 ns::f+0x4 (/system/lib64/libz.so)
	5500000090 of_the_phone+0x10 (/bin/sh)
	72000050ff com.example.Main.run+0xff (/data/app/base.vdex)
	7300000000 [unknown] (/system/lib64/libc.so)
	7100000ff0 [unknown] (/system/lib64/libz.so)
END
check "simpleperf's list of symbols" diff expected out
check "… and no section is skipped" eval '! grep -q "feature section" err'
"$TALLY" report --stdio --percent-limit 0 phone.data >out 2>err
check "… in reports" grep -q ' inflate$' out
"$TALLY" report --header-only phone.data >out 2>err
check "… and its other metadata" eval 'grep -q "^# simpleperf_version : 1.build.9$" out && grep -q "^#   cpu-clock,1,0$" out'
cp phone.data packed.data
check "… and pack stores the names" eval '"$TALLY" pack packed.data >out 2>err && "$TALLY" script --stdio -F ip,sym,symoff,dso packed.data 2>err | sed "s/^ *//" | diff expected - >out'

# ---- events without names
"$here/make_recording.py" nameless nameless.data
timeout 60 perf script -F event -i nameless.data >perf.txt 2>/dev/null
timeout 60 "$TALLY" script --stdio -F event -i nameless.data >tally.txt 2>err
check "events without names get perf's names" eval 'diff <(tr -d " " <perf.txt) <(tr -d " " <tally.txt) >out && [ "$(grep -c . tally.txt)" -gt 130 ]'
check "… and can be selected by them" test "$("$TALLY" script --stdio -e L1-dcache-load-misses nameless.data 2>err | grep -c .)" = 1

# ---- another kernel's recording: no build-id and no release say so, but its maps do
kernel_functions() { grep -c '[_a-z0-9]+0x[0-9a-f]* (\[kernel.kallsyms\])' "$1"; }
named_of() { # PATCHES…: how many samples have the name of a kernel function
	"$patch" --without 2 --without 4 "$@" perf.data changed.data && script changed.data >after.txt && kernel_functions after.txt
}
if [ "$(id -u)" = 0 ] && [ "$(uname -m)" = x86_64 ] && record perf.data -a -e cpu-clock -F 999 -- "$WORKLOAD" faults 0.3 &&
	script perf.data >before.txt && [ "$(kernel_functions before.txt)" -gt 0 ]; then
	all=$(kernel_functions before.txt)
	stext=$(($(awk '$3 == "_stext" { print "0x" $1; exit }' /proc/kallsyms) - $(awk '$3 == "_text" { print "0x" $1; exit }' /proc/kallsyms)))
	check "kernel functions get names if the kernel may be the recorded one" test "$(named_of)" = "$all"
	check "… with modules of this release" test "$(named_of --module "/lib/modules/$(uname -r)/kernel/a.ko")" = "$all"
	check "… with _stext at this kernel's address" test "$(named_of --stext "$stext")" = "$all"
	check "… moved by KASLR" test "$(named_of --stext $((stext + (4 << 20))))" -gt 0
	check "kernel functions get no names if modules are of another release" test "$(named_of --module /lib/modules/4.14.18/kernel/a.ko)" = 0
	check "… and a message says so" grep -q 'kernel functions are not named: the recording is of another kernel' err
	check "… nor if their path begins with /usr" test "$(named_of --module /usr/lib/modules/4.14.18-x/kernel/a.ko)" = 0
	check "… nor if _stext is where KASLR can't have put it" test "$(named_of --stext $((stext + 456)))" = 0
	check "… nor if it is outside the range of kernels" test "$(named_of --stext $((-(1 << 40))))" = 0
	timeout 60 "$TALLY" report --stdio changed.data >out 2>err
	check "… in reports, too" eval '! grep -q "\[k\] [a-z_]" out && grep -q "of another kernel" err'
else
	skip "another kernel's recording" "needs root, x86-64, and that perf may record the kernel"
fi

# ---- traces of a CPU, in AUX areas
says() { # KIND WORDS COMMAND…
	"$here/make_recording.py" "$1" traced.data && timeout 60 "$TALLY" "${@:3}" traced.data >out 2>&1 </dev/null
	grep -qF "$2" out
}
for command in report script fold timeline flamegraph; do
	check "$command: a trace without samples" says traced_pt 'has 5.0 KiB of Intel PT trace (AUX data) but no samples' $command
	check "… and a message names what decodes it" grep -q "^hint: 'perf inject --itrace -i FILE -o OUT'" out
done
check "a trace with samples" says traced_etm_samples 'warning: 5.0 KiB of CoreSight ETM trace (AUX data) is not decoded' report
check "… the samples are shown" grep -q '7 samples of cpu-clock' out
check "a trace inside samples" says traced_in_samples 'warning: 192 B of Intel PT trace (AUX data) is not decoded' report
check "a trace of an unknown kind" says traced_unknown '5.0 KiB of hardware trace (AUX data) but no samples' report
done_testing
