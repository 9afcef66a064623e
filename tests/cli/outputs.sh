#!/bin/bash
# An output never replaces what it was made from, nor a recording, nor a file that is no recording
# by a recording.  TAP; $TALLY is the binary, $WORKLOAD the program of record_workload.c.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch
have python3 || skip_all "there is no python3"

"$here/make_recording.py" idle one.data && "$here/make_recording.py" idle other.data || exit 1
cp one.data tally.data
printf 'a;b 1\n' >stacks.folded
echo '{"counts":[]}' >saved.json
sum() { cat one.data other.data tally.data stacks.folded saved.json 2>/dev/null | cksum; }
before=$(sum)
run() { timeout 60 "$TALLY" "$@" >out 2>err </dev/null; }
refused() { # REASON COMMAND…
	! run "${@:2}" && grep -qF "is $1, and would be overwritten" err && grep -q '^hint: name another file with -o' err &&
		[ "$(sum)" = "$before" ]
}

for command in flamegraph fold export annotate timeline pack; do
	case $command in export) format=(-f pprof) ;; *) format=() ;; esac
	check "$command does not overwrite its input" refused "also an input" $command "${format[@]}" -i one.data -o one.data
	check "… nor by another name" eval 'ln -sf one.data link.data && refused "also an input" $command "${format[@]}" -i one.data -o ./link.data'
	check "… nor another recording" refused "a recording" $command "${format[@]}" -i one.data -o other.data
done
for command in flamegraph fold timeline; do
	check "$command does not overwrite the default input" refused "also an input" $command -o tally.data
	check "… nor standard input" eval '! timeout 60 "$TALLY" $command -i - -o one.data <one.data >out 2>err && grep -q "also an input" err'
done
check "folded text is not overwritten by its flame graph" refused "also an input" flamegraph -i stacks.folded -o stacks.folded
check "… nor the other side of a comparison" refused "also an input" flamegraph --diff stacks.folded -o stacks.folded one.data
check "saved counts are not overwritten" refused "also an input" compare saved.json saved.json -o saved.json
check "a new file and an older output are written" eval 'run fold -i one.data -o new.folded && run fold -i one.data -o new.folded && [ -s new.folded ]'

# ---- recordings
if ! timeout 60 "$TALLY" record -q -o probe -e cpu-clock true 2>err; then
	skip "record replaces only recordings" "$(head -1 err)"
	done_testing
fi
printf 'exit 0\n' >words.sh
recorded() { timeout 60 "$TALLY" record -q -e cpu-clock "$@" >out 2>err </dev/null; }
words_stay() { [ "$(cat words.sh)" = "exit 0" ] && [ ! -e words.sh.old ]; }
check "record does not replace a file that is no recording" eval '! recorded -o words.sh -- sh words.sh && grep -q "is not a recording" err && words_stay'
check "… and says how to" grep -q '^hint: .*--force' err
check "… nor does record -- with a stale FILE.old that is none" eval \
	'recorded -o mine.data true && echo text >mine.data.old && ! recorded -o mine.data true && [ "$(cat mine.data.old)" = text ]'
check "--force replaces it, and keeps it as FILE.old" eval 'recorded --force -o words.sh true && [ "$(cat words.sh.old)" = "exit 0" ]'
check "a recording is replaced, and kept as FILE.old" eval \
	'rm -f mine.data.old && recorded -o mine.data true && recorded -o mine.data true && [ -s mine.data.old ]'
check "an empty file is replaced" eval ': >empty.data && recorded -o empty.data true && [ -s empty.data ]'
printf 'exit 0\n' >program.sh
check "stat -o does not overwrite the script that it counts" eval \
	'! run stat -o program.sh sh program.sh && grep -q "also an input" err && [ "$(cat program.sh)" = "exit 0" ]'
check "… nor a recording" refused "a recording" stat -o one.data true
done_testing
