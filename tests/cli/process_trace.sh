#!/bin/bash
# tally stat --provider process counts a program's own tracepoints (tally/tracepoint.h).  TAP; $TALLY, $SHOP (linked with
# the shared libtally).
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
if ! "$TALLY" stat --provider process true >/dev/null 2>err; then
	skip_all "no process provider here: $(head -1 err)"
fi

# count EVENTS command…: counts by name are in ./counts, messages in ./err
count() {
	local events=$1
	shift
	"$TALLY" stat --provider process -j -e "$events" -- "$@" >out 2>err &&
		python3 -c '
import json
for line in open("err"):
    if line.startswith("{"):
        for event in json.loads(line)["events"]:
            print(event["name"], int(event["value"]))' >counts
}
is() { [ "$(sed -n "s/^$1 //p" counts)" = "$2" ]; }

# The class says tally_count(cents): 2 for each of 1,000 hits of three threads, of a child and of main().
count shop:order_changed,shop:order_lost "$SHOP"
check "hits of threads and of a forked child are counted, by what the class counts" is shop:order_changed 10000
check "a child's hits" is shop:order_lost 7
count shop:order_changed "$SHOP" late
check "hits before the program publishes its tracepoints are not counted" is shop:order_changed 10000
count '{task-clock,shop:order_changed}' "$SHOP"
check "in a group with a clock" is shop:order_changed 10000
count shop:order_changed sh -c '"$1"; "$1"' sh "$SHOP"
check "in two programs" is shop:order_changed 20000
"$TALLY" stat --provider process -e shop:no_such,shop:order_lost -- "$SHOP" >out 2>&1
check "a name that no program publishes is told" grep -q 'no program published all of these tracepoints' out
"$TALLY" record --provider process -e shop:order_lost -o t.data -- "$SHOP" >out 2>&1
check "they are not sampled, and that is said" grep -q "own tracepoints are counted, not sampled" out
"$SHOP" >out 2>err
check "without tally the program runs as it is"
done_testing
