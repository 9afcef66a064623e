#!/bin/sh
# The skeleton host does what docs/porting.md says, and is as short as it says.  TAP.
# Usage: skeleton.sh PROGRAM SOURCE
echo 1..2
failed=0
wanted="switches 1
faults 2, wakes 2
sample at 401000 of 7000
sample at 403000 of 9000"
seen=$("$1") && [ "$seen" = "$wanted" ] && echo "ok 1 - counts switches, samples its own faults alone" || {
	failed=1
	echo "$seen" | sed 's/^/# /'
	echo "not ok 1 - counts switches, samples its own faults alone"
}
lines=$(wc -l <"$2")
[ "$lines" -lt 200 ] && echo "ok 2 - a host is under 200 lines" || {
	failed=1
	echo "not ok 2 - a host is under 200 lines, not $lines"
}
exit $failed
