#!/bin/bash
# Branch stacks (perf record -b, --call-graph lbr), as perf prints them.  make_recording.py makes
# the files, since few test machines have such hardware.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export HOME=$scratch

if ! command -v perf >/dev/null || ! command -v python3 >/dev/null || ! "$here/make_recording.py" lbr lbr.data 2>out; then
	echo "1..0 # SKIP needs perf, python3 and a library with symbols"
	exit 0
fi
"$here/make_recording.py" branch_stacks branch_stacks.data
"$here/make_recording.py" branch_leaves branch_leaves.data

same() {
	timeout 100 perf script --no-inline ${2:+-F "$2"} -i "$1.data" >perf.txt 2>perf.err
	timeout 100 "$TALLY" script --no-inline ${2:+-F "$2"} "$1.data" >tally.txt 2>tally.err
	diff perf.txt tally.txt >out && [ -s tally.txt ]
}
for kind in branch_stacks lbr branch_leaves; do
	for fields in "" +brstack +brstacksym +brstack,+brstacksym; do
		check "as perf prints them: $kind $fields" same $kind "$fields"
	done
done

# Every frame of a stack made from branch records is the call itself, in reports too.
"$TALLY" script --no-inline lbr.data | grep -c "^	" >frames
check "20 samples, each with 8 calls and the last function called" test "$(cat frames)" = 180
"$TALLY" fold --no-inline lbr.data >folded 2>out
check "a stack of 9 frames" awk -F';' 'NF != 10 { bad = 1 } END { exit bad || !NR }' folded
"$TALLY" script -F +nonsense lbr.data >out 2>&1
check "an unknown field" test $? = 2
echo "1..$number"
