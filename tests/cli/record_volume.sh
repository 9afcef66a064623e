#!/bin/bash
# SPEC G3, C6, D2: many samples of 8 threads at 20,000 a second, none lost with the default ring.
# $1: their number.  TAP; $TALLY is the binary, $SHARES MS THREADS spends 50, 30 and 20 % of its
# time in three functions.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cp "$SHARES" "$scratch/shares" || exit 1
cd "$scratch" || exit 1
number=0
check() { # reports the status of the last command
	if [ $? = 0 ]; then result=ok; else result="not ok"; fi
	number=$((number + 1)); echo "$result $number - $1"
	[ "$result" = ok ] || head -20 out | sed 's/^/# /'
}
allowed=$(cat /proc/sys/kernel/perf_event_max_sample_rate 2>/dev/null || echo 0)
if [ "$allowed" -lt 20000 ] || ! "$TALLY" record -q -e cpu-clock -F 20000 -o probe true 2>/dev/null; then
	echo "1..0 # SKIP 20,000 samples a second are more than this machine allows ($allowed)"
	exit 0
fi

volume() {
	"$TALLY" record -e cpu-clock -F 20000 --call-graph fp -o volume -- sh -c "exec ./shares $(($1 / 150 + 60)) 8 >shared" >out 2>&1
	status=$?
	samples=$(sed -n 's/^tally: \([0-9,]*\) samples.*/\1/p' out | tr -d ,)
}
volume "$1"
[ $status = 0 ] && ! grep -q -e lost -e throttled out
check "no sample is lost, none throttled"
echo "$samples samples" >>out
[ "${samples:-0}" -ge "$1" ]
check "$1 samples or more"
cat >truth.py <<'PY'
import re, sys
truth = {name: float(value) for name, value in (line.split() for line in open("shared"))}
shares = dict((name, float(share)) for share, name in re.findall(r"^ *([\d.]+) ?%.*?\b(half|third|fifth)\b", open("out").read(), re.M))
print(truth, shares, file=open("out", "a"))
bad = abs(int(sys.argv[1]) / 20000 / truth["seconds"] - 1) > .05
sys.exit(bad or any(abs(shares[name] - truth[name]) > 2 for name in ("half", "third", "fifth")))
PY
true_shares() { "$TALLY" report --stdio --no-children --no-inline -i volume >out 2>&1 && python3 truth.py "$samples"; }
# Tries again if the machine stood still: then a clock's time continues, but no timer runs.
true_shares || { volume "$1" && true_shares; } || { volume "$1" && true_shares; }
check "the report's shares are right within 2 points, the samples' time within 5 %"
if command -v perf >/dev/null && [ "$1" -le 300000 ]; then
	perf script -F event,time -G -i volume >out 2>&1
	[ "$(grep -c cpu-clock out)" = "$samples" ]
	check "perf reads them all"
fi
echo "1..$number"
