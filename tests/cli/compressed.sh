#!/bin/bash
# Recordings and text that were compressed as a whole are read like others.  TAP; $TALLY is the
# binary.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch
have python3 || skip_all "there is no python3"

"$here/make_recording.py" idle plain.data || exit 1
printf 'a;b 1\na;c 2\n' >plain.folded
fold() { timeout 60 "$TALLY" fold "$@" 2>err; }
fold plain.data >expected.data && fold plain.folded >expected.folded || exit 1
for packer in gzip xz "zstd -q"; do
	have "${packer%% *}" || { skip "$packer" "there is no ${packer%% *}"; continue; }
	for kind in data folded; do
		$packer -c <plain.$kind >packed
		check "$packer: $kind" eval 'fold packed | cmp - expected.$kind'
		check "… from a pipe" eval 'cat packed | fold | cmp - expected.$kind'
	done
	$packer -c <plain.data >packed
	check "… report and script read it" eval 'timeout 60 "$TALLY" report --stdio packed >out 2>err && grep -q "20 samples" out &&
		timeout 60 "$TALLY" script packed 2>err | grep -q cpu-clock'
	size=$(wc -c <packed)
	head -c $((size - 20)) packed >cut
	check "… a cut file is damaged" eval '! fold cut && grep -q "cut: it is damaged" err && ! timeout 60 "$TALLY" report cut >out 2>err && grep -q "it is damaged" err'
done
printf 'BZh91AY&SY' >bz
for command in fold flamegraph report script; do
	check "$command names another kind of compression" eval '! timeout 60 "$TALLY" $command bz >out 2>err && grep -q "compressed with bzip2: unpack it first" err'
done
done_testing
