#!/bin/bash
# Work that commands do in several threads, for ThreadSanitizer: naming after a recording and for a
# report, unpacking ahead, a flame graph's two trees.  In other builds, it checks that they all end.
# TAP; $TALLY is the binary, $WORKLOAD the program of record_workload.c.
set -u
number=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export PAGER=cat NO_COLOR=1 XDG_CACHE_HOME=$scratch

run() { # WHAT COMMAND…
	number=$((number + 1))
	if timeout 120 "${@:2}" >out 2>err && ! grep -q ThreadSanitizer err; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		head -n 40 err | sed 's/^/# /'
	fi
}

if ! "$TALLY" record -q -e cpu-clock -o try true >err 2>&1; then
	echo "1..0 # SKIP nothing can be recorded: $(head -n 1 err)"
	exit 0
fi
run "a recording is named when it is finished" "$TALLY" record -q -e cpu-clock -F 999 -g -o named -- "$WORKLOAD" threads
run "a recording of several programs" "$TALLY" record -q -e cpu-clock -F 999 --call-graph dwarf --no-pack -o bare -- \
	sh -c "\"$WORKLOAD\" threads; ls -R /usr/include >/dev/null; \"$TALLY\" list >/dev/null"
run "a report of names in the recording" "$TALLY" report --stdio -g -i named
rm -rf tally
run "a report that names by files, without a cache" "$TALLY" report --stdio -g -i bare
run "the same with one" "$TALLY" report --stdio -g -i bare
run "script" "$TALLY" script -i bare
run "a flame graph" "$TALLY" flamegraph -i bare -o graph.html
run "names are packed" "$TALLY" pack bare
echo "1..$number"
