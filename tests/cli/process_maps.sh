#!/bin/bash
# Code that appears while a program runs under the process provider: each sample is in a mapping that a
# record has told before.  TAP; $TALLY is the binary, $NEW_CODE the test program, $SPINNING its library.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1

if ! "$TALLY" record --provider process -o recording -- "$NEW_CODE" "$SPINNING" >out 2>err; then
	skip_all "this tally has no process provider: $(head -n 1 err)"
fi

record() { "$TALLY" record --provider process -c 1000000 -o recording "$@" >ranges 2>err; }
# Prints "ADDRESS OBJECT" of each sample's innermost frame.
places() {
	"$TALLY" script -i recording 2>err | awk '/task-clock:/ { getline; address = $1; sub(/^.*\(/, ""); sub(/\)$/, ""); print address, $0 }'
}
# The share in percent of the samples whose object matches.
share() { awk -v object="$1" '$2 ~ object { n++ } END { printf "%.1f\n", 100 * n / (NR ? NR : 1) }' places; }
at_least() { awk -v n="$1" -v low="$2" 'BEGIN { exit !(n >= low) }'; }
# No sample is outside of all mappings, and the mapping of each range was told before its first sample.
known() { ! grep -q '\[unknown\]' places; }

record -- "$NEW_CODE" "$SPINNING" library && places >places && known && at_least "$(share "$(basename "$SPINNING")")" 90
check "dlopen: samples of the library, also of its constructor, are in it"
"$TALLY" report --stdio -i recording --sort sym >out 2>err && grep -q spin_in_constructor out && grep -q spin_in_library out
check "its functions have names"
record -- "$NEW_CODE" "$SPINNING" again again library && places >places && known
check "dlclose: a library that is loaded again is known"
[ "$("$TALLY" script --show-mmap-events -i recording 2>err | grep -c "MMAP2.*$(basename "$SPINNING")")" -ge 1 ]
check "it has a record"
cp "$SPINNING" one.so && cp "$SPINNING" two.so
record -- "$NEW_CODE" ./one.so library other:./two.so library && places >places && known && at_least "$(share one.so)" 45 && at_least "$(share two.so)" 45
check "a library in the place of another one is told apart"
for way in mmap mprotect mremap file fork; do
	record -- "$NEW_CODE" "$SPINNING" $way && places >places && known
	check "$way: samples of new code are in a mapping"
	read -r _ from _ <ranges
	"$TALLY" script --show-mmap-events -i recording 2>err >script
	# the record of the page comes first, then samples in it
	awk -v page="${from%???}" '
		/MMAP2/ && index($0, "[0x" page "000(") { told = NR }
		!told && $1 ~ "^" page "...$" { early++ }
		told && $1 ~ "^" page "...$" { late++ }
		END { exit !(told && !early && late > 20) }' script
	check "$way: its record precedes the samples"
done
grep -q 'rwxp //anon' script
check "anonymous memory is named as the kernel names it"
record -- "$NEW_CODE" "$SPINNING" file && "$TALLY" script --show-mmap-events -i recording 2>err | grep -q 'r-xs /memfd:code of a file (deleted)'
check "a file's mapping has its name and its flags"
record -- "$NEW_CODE" "$SPINNING" many && at_least 2 "$(sed -n 's/^many: \([0-9.]*\) s$/\1/p' err)"
check "thousands of mappings cost little"

THREAD=1 record -- "$LINKED" && places >places && known && at_least "$(share "$(basename "$SPINNING")")" 80
check "constructors of libraries: threads that they start are sampled"
grep -qx 'TALLY_PLAN 0 LD_PRELOAD 0' ranges
check "they don't see tally's variables"

# --- without /proc -----------------------------------------------------------------------------------------------
if grep -q __asan_report_load "$TALLY"; then
	skip "without /proc, objects are told by ld.so's list, and anonymous memory as it is mapped" "leak checkers need /proc"
elif [ "$(id -u)" = 0 ] && unshare -m umount -l /proc 2>/dev/null; then
	# shellcheck disable=SC2016 # the inner shell's
	unshare -m sh -c 'umount -l /proc && exec "$@"' sh "$TALLY" record --provider process -c 1000000 -o recording -- \
		"$NEW_CODE" "$SPINNING" library mmap >ranges 2>err && places >places && known &&
		at_least "$(share "$(basename "$SPINNING")")" 40
	check "without /proc, objects are told by ld.so's list, and anonymous memory as it is mapped"
	"$TALLY" script --show-mmap-events -i recording 2>err | grep -q "MMAP2.*$NEW_CODE\$"
	check "the program has its path"
else
	skip "without /proc, objects are told by ld.so's list, and anonymous memory as it is mapped" "/proc can't be unmounted here"
	skip "the program has its path" "/proc can't be unmounted here"
fi
done_testing
