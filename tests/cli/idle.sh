#!/bin/bash
# The idle task does not rank first: every view that ranks or draws leaves out the samples of idle
# CPUs, and says so.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch

have python3 || skip_all "there is no python3"
"$here/make_recording.py" idle_functions idle.data && "$here/make_recording.py" only_idle_functions only.data || exit 1
printf '%s T %s\n' ffffffff81000000 _text ffffffff81001000 pv_native_safe_halt ffffffff81002000 between \
	ffffffff81003000 handle_it ffffffff81004000 _end >kallsyms
tally() { timeout 60 "$TALLY" "$@" --kallsyms kallsyms >out 2>err; }
has() { grep -qF -- "$1" out; }

tally report --stdio idle.data --event cpu-clock
check "idle samples are left out, and their number is shown" \
	eval 'has "25 samples of cpu-clock" && has "75% is idle and left out: percentages are of the rest; --idle shows it" && ! has safe_halt'
check "… percentages are of the other samples; an interrupt in the idle task counts as work" eval 'grep -q "80.00%.*busy.*handle_it" out && grep -q "20.00%.*handle_it" out'
tally report --stdio idle.data --event cpu-clock --idle
check "--idle shows idle samples" eval 'has "100 samples of cpu-clock" && grep -q "75.00%.*pv_native_safe_halt" out && ! has "left out"'
tally report --stdio idle.data --event cpu-clock --symbol pv_native_safe_halt
check "naming an idle function shows them too" eval 'has "75 samples of cpu-clock"'
tally report --stdio idle.data --event power:cpu_idle
check "hits of a tracepoint are all shown" eval 'has "3 samples of power:cpu_idle" && has pv_native_safe_halt'
tally report -j idle.data --event cpu-clock
check "JSON has the number of samples left out" eval 'grep -q "\"idle_samples\": 75" out && grep -q "\"samples\": 25" out && grep -q "\"idle_period\": 75000000" out'
tally report --stdio only.data
check "a machine that was only idle is shown with its idle samples" \
	eval 'has "0 samples of cpu-clock" && has "100% is idle"'
tally flamegraph -o idle.svg idle.data
check "a flame graph leaves them out and says so" \
	eval 'grep -qF "75% is idle" err && ! grep -q safe_halt idle.svg && grep -q handle_it idle.svg'
tally flamegraph -o idle.svg --idle idle.data
check "… unless --idle is given" grep -q safe_halt idle.svg
tally flamegraph -o only.svg only.data
check "… and has nothing to draw if all samples are idle" eval 'grep -qF "100% is idle" err'
timeout 60 "$TALLY" report --stdio idle.data --event cpu-clock >out 2>err
check "without kernel symbols, samples of the idle task are left out" \
	eval 'has "20 samples of cpu-clock" && has "80% is idle" && grep -q "100.00%.*busy\|command busy" out'
left_out='75% is idle and left out: percentages are of the rest; --idle shows it'
said() { grep -qF -- "$1" err; }
tally fold idle.data
check "folded stacks leave them out, and a message says so" eval '! has safe_halt && has handle_it && said "$left_out"'
tally fold --idle idle.data
check "… unless --idle is given" eval 'has safe_halt && ! said "idle and left out"'
tally fold --comm swapper idle.data
check "… or calls the idle task by its name" eval 'has safe_halt && ! said "idle and left out"'
tally script idle.data
check "script shows all records" eval 'has safe_halt && ! said "idle and left out"'
for format in speedscope chrome firefox pprof; do
	name="an export for $format"
	tally export -f $format -o exported idle.data
	check "$name leaves them out and says so" eval 'grep -qaF handle_it exported && said "$left_out"'
	tally export -f $format --idle -o with idle.data
	check "… unless --idle is given" eval '[ $(wc -c <with) -gt $(wc -c <exported) ] && ! said "idle and left out"'
done
tally export -f chrome -o exported idle.data
check "an export's calls do not include them" eval '! grep -q "safe_halt" exported'
tally diff idle.data idle.data
check "diff leaves them out on both sides and says so for each" \
	eval '! has safe_halt && has handle_it && [ "$(grep -cF "idle.data: $left_out" err)" = 2 ]'
tally diff --idle idle.data idle.data
check "… unless --idle is given" eval 'has safe_halt && ! said "idle and left out"'
tally flamegraph --diff idle.data -o both.svg idle.data
check "a flame graph of two recordings does too" eval '! grep -q safe_halt both.svg && [ "$(grep -cF "idle.data: $left_out" err)" = 2 ]'
tally annotate --stdio -i idle.data
check "annotate says what it left out" said "$left_out"
if timeout 60 "$TALLY" record -q -a -e cpu-clock -o all.data -- sleep 0.5 2>err && timeout 60 "$TALLY" script --stdio -i all.data 2>err | grep -q 'default_idle'; then
	timeout 60 "$TALLY" report --stdio -i all.data >out 2>err
	# An interrupt's samples have the halt as a caller, never as the sampled function.
	check "a recording of this machine, too" eval 'has "idle and left out" && ! grep -v " 0.00%  swapper" out | grep -q "swapper.*halt"'
	for try in 1 2 3 4 5; do # a busy machine may have nothing to leave out
		timeout 60 "$TALLY" top --stdio -a -d 500ms -n 1 -E 1000 --percent-limit 0 >out 2>err </dev/null
		grep -q "and [0-9]*% idle (--idle)" out && break
	done
	check "top leaves them out and shows their share" eval '! grep -q "safe_halt\|default_idle" out && grep -q "and [0-9]*% idle (--idle)" out'
	timeout 60 "$TALLY" top --stdio -a -d 500ms -n 1 --idle >out 2>err </dev/null
	check "… unless --idle is given" eval '! has "% idle (--idle)"'
else
	skip "a recording of this machine, too" "the kernel takes no samples of idle CPUs, or refuses"
fi
done_testing
