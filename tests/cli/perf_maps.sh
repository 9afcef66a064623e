#!/bin/bash
# Perf maps are held while their processes are recorded: those that a process deletes, replaces, or takes with it when its
# file system goes.  TAP; $TALLY is the binary, $MADE_CODE the program of made_code.c.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export HOME=$scratch

record() { timeout 60 "$TALLY" record -e cpu-clock -F 1000 -o "$@" >out 2>&1 </dev/null; }
report() { timeout 60 "$TALLY" report --stdio --percent-limit 0 "$1" >out 2>&1; }

cp "$MADE_CODE" made_code
timeout 30 ./made_code >out 2>&1
[ $? != 77 ] || skip_all "it can't be made here: memory that is written and executed, or this machine's code"
# Long enough for a recorder that gets to run late.
record first.data -- sh -c 'echo $$ >pid; exec ./made_code 4' || skip_all "tally can't record here: $(head -c 100 out | tr '\n#' '  ')"
check "the map is gone" test ! -e "/tmp/perf-$(cat pid).map"
report first.data
check "the recording names what it said" grep -Eq 'perf-[0-9]+\.map +made_later' out
check "and what the map said that it replaced" grep -Eq 'perf-[0-9]+\.map +made_first' out
record bare.data --no-pack -- ./made_code
report bare.data
check "without names in the recording nobody knows" eval '! grep -Eq "made_(first|later)" out'

./made_code 4 stop &
pid=$!
tries=200; until grep -q '^State:.T' "/proc/$pid/status" || [ $((tries -= 1)) = 0 ]; do sleep 0.05; done
record attached.data -p "$pid" -- sh -c 'kill -CONT "$1"; while kill -0 "$1" 2>/dev/null; do sleep 0.1; done' joined "$pid"
wait "$pid"
report attached.data
check "of a process that is joined" eval 'grep -q made_first out && grep -q made_later out'

contained() { unshare -m -p -f sh -c 'mount -t tmpfs none /tmp && mount -t proc proc /proc && exec "$@"' contained "$@"; }
mkdir -p "/var/tmp/tally-$$" && cp made_code "/var/tmp/tally-$$/"
trap 'rm -rf "$scratch" "/var/tmp/tally-$$"' EXIT
if contained true >/dev/null 2>&1; then
	cp made_code "/var/tmp/tally-$$/keeps"
	record contained.data -- unshare -m -p -f sh -c 'mount -t tmpfs none /tmp && mount -t proc proc /proc &&
		cd "$1" && ./keeps 4 keep' contained "/var/tmp/tally-$$"
	report contained.data
	check "of a container that has ended, in its /tmp and by its pid" eval 'grep -q made_first out && grep -q made_later out'
else
	skip "of a container that has ended, in its /tmp and by its pid" "no namespaces for this user"
fi
echo "1..$number"
