#!/bin/bash
# A program that uses threads, processes and signals in every way ends under the process provider as it
# does without it: all results are right, nothing hangs, crashes or is left behind (process_torture.c).
# $1: seconds in total; $2: the first seed.  TAP; $TALLY is the binary, $TORTURE the program,
# $TORTURE_LIBRARY a library that it loads, $OBJECTS the folder of the preloaded objects: those with checks,
# too.  `make soak-process` runs it for an hour.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
part=$((${1:-15} / 5)) seed=${2:-1}
tally() { timeout -k 10 $((part + 450)) "$TALLY" "$@"; }
tally stat --provider process -o counts -- "$TORTURE" exit 3 >out 2>err
[ $? = 3 ] || skip_all "this tally has no process provider: $(head -n 1 err)"

# ended STATUS: the program's exit status, and its line
ended() { [ "$1" = 0 ] && grep -q ' rounds, 0 failed$' out; }
tally stat --provider process -o counts -- "$TORTURE" "$part" "$seed" >out 2>err
check "a program that is counted ends as without" ended $?
sed -n 's/.* rounds.*/# &/p' out
tally record --provider process -F 999 -o torture.data -- "$TORTURE" "$part" $((seed + 100000)) >out 2>err
check "a program that is sampled" ended $?
sed -n 's/.* rounds.*/# &/p; s/.*samples in/# &/p' out err
check "no ring has two writers" eval '! grep "overwrote a ring" err'
"$TALLY" report --stdio -i torture.data >out 2>err
check "its recording is readable, and names what it did" grep -q torture_sum out
# Many signals, and rings that are soon full.
tally record --provider process -F 7999 -m 16k -o often.data -- "$TORTURE" "$part" $((seed + 200000)) >out 2>err
check "a program that is sampled very often" ended $?
sed -n 's/.* rounds.*/# &/p; s/.*samples in/# &/p' out err

# with_object NAME COMMAND...: tally, with another object to preload, records the program
with_object() {
	local object="$OBJECTS/libtally-process-$1.so" what="a program whose object is checked: $1"
	[ -f "$object" ] || { skip "$what" "this build has no such object"; return; }
	mkdir -p "$1/src/engine/hosts/process" && cp "$TALLY" "$1/tally" &&
		cp "$object" "$1/src/engine/hosts/process/libtally-process.so" || exit 1
	shift
	timeout -k 10 $((part + 450)) "$@" record --provider process -F 1999 -o checked.data -- \
		"$TORTURE" "$part" $((seed + 300000)) >out 2>err
	check "$what" ended $?
	sed -n 's/.* rounds.*/# &/p; s/.*samples in/# &/p' out err
}
# Undefined behaviour ends the program.
with_object checked checked/tally
# So does what AddressSanitizer finds.  replace_intrin: the object copies whole stacks by memcpy().
asan=$(ldd "$OBJECTS/libtally-process-asan.so" 2>/dev/null | sed -n 's/.*libasan[^ ]* => \([^ ]*\) .*/\1/p')
with_object asan env LD_PRELOAD="$asan" \
	ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0:replace_intrin=0:log_path="$scratch/asan_report" asan/tally
cat asan_report* 2>/dev/null | grep -v 'fully support makecontext' | sed 's/^/# /' | head -n 60
done_testing
