#!/bin/bash
# Which recording is read if none is named: tally.data, else perf.data; `tally diff` compares it with the one that it
# replaced.  TAP; $TALLY is the binary.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export NO_COLOR= LC_ALL=C.UTF-8

have python3 || skip_all "needs python3"
# reads STATUS COMMAND…: stdout to ./out, stderr to ./err
reads() { local wanted=$1; shift; "$TALLY" "$@" >out 2>err </dev/null; [ $? = "$wanted" ]; }
has() { grep -qF -- "$1" out; }
told() { grep -qF -- "$1" err; }
# made FILE OBJECT SECONDS: a recording of this object's code, last changed then
made() { OBJECTS=/absent/$2 "$here/make_recording.py" in_objects "$1" && touch -d "@$3" "$1"; }

made tally.data ours 1000 && made perf.data perfs 900
for command in 'report --stdio' 'script' 'fold' 'annotate' 'flamegraph' 'export -f pprof -o e.pb.gz' 'timeline'; do
	# shellcheck disable=SC2086
	reads 0 $command && ! told newer
	check "$command: an older perf.data is not mentioned"
	touch -d @1000 perf.data
	# shellcheck disable=SC2086
	reads 0 $command && ! told newer && touch -d @1100 perf.data && reads 0 $command &&
		[ "$(grep -c "^tally ${command%% *}: reading tally.data, but perf.data is newer: -i perf.data reads that one$" err)" = 1 ]
	check "… and a newer one in one line"
	touch -d @900 perf.data
done
touch -d @1100 perf.data
reads 0 fold && has ours && ! has perfs && reads 0 fold -i perf.data && has perfs && ! told newer && reads 0 fold -i tally.data && has ours && ! told newer
check "tally.data is read; -i chooses, and nothing is said"
"$TALLY" fold <perf.data >out 2>err && has perfs && ! told newer
check "standard input, if it is a file, is chosen before both"
reads 0 report --stdio --header-only && told 'perf.data is newer'
check "also the header's file is told"
reads 1 pack && told 'tally pack: reading tally.data, but perf.data is newer'
check "pack says the same"
mv tally.data away && reads 0 fold && has perfs && ! told newer && mv away tally.data
check "perf.data is read where there is no tally.data"
mkdir empty && (cd empty && ! "$TALLY" report --stdio 2>err </dev/null && grep -q 'tally.data' err)
check "without both, tally.data is missed"

# --- diff --------------------------------------------------------------------------------------------------------
touch -d @900 perf.data
reads 2 diff && told 'there is no tally.data.old here' && told 'hint: tally diff OLD NEW'
check "diff: without an old recording, a message says which is missing"
made tally.data.old old 500
reads 0 diff && has 'old: tally.data.old' && has 'new: tally.data:' && ! told newer
check "diff compares tally.data.old with tally.data"
touch -d @1100 perf.data
reads 0 diff && has 'new: tally.data:' && [ "$(grep -c "perf.data is newer: 'tally diff OLD perf.data' compares that one" err)" = 1 ]
check "… and says if perf.data is newer"
rm tally.data tally.data.old && made perf.data.old perfs-old 500
reads 0 diff --stdio && has 'old: perf.data.old' && has 'new: perf.data:' && ! told newer
check "… or perf.data.old with perf.data, where there is no tally.data"
reads 2 diff perf.data && told 'name two recordings' && reads 2 diff --old perf.data && told 'name two recordings'
check "… but one recording is not compared with a default"

done_testing
