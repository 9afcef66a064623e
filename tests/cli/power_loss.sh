#!/bin/bash
# Power is lost: what a copy of the disk, made at any moment, has of tally's outputs.  After a message
# of success it has them whole; before, an old output or a recording up to what was written back.
# TAP; $TALLY is the binary, $WORKLOAD the program of record_workload.c.
set -u
[ "${1-}" = inside ] || ! unshare --mount true 2>/dev/null || exec unshare --mount --propagation private bash "$0" inside
. "$(dirname "$0")/tap.sh"
cp "$TALLY" "$scratch/tally" && cp "$WORKLOAD" "$scratch/work" || exit 1
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch XDG_CACHE_HOME=$scratch/cache PATH=$PATH:/usr/sbin:/sbin
[ "${1-}" = inside ] && [ "$(id -u)" = 0 ] || skip_all "needs root that may mount"
have mkfs.ext4 || skip_all "there is no mkfs.ext4"
truncate -s 24M disk && mkfs.ext4 -q -F disk 2>err && mkdir live lost && mount -o loop disk live 2>err || skip_all "no file system can be mounted: $(head -1 err)"
trap 'umount -l live lost 2>/dev/null; rm -rf "$scratch"' EXIT

# Copies the disk as it is, and mounts the copy: its journal is replayed, as after a loss of power.
lose_power() {
	umount lost 2>/dev/null
	cp disk copy && mount -o loop copy lost
}
samples() { ./tally script -i "$1" 2>>out | grep -c '^[^	].*[0-9]: '; }

./tally record -q -g -e cpu-clock -o in.data -- ./work threads 2>out || skip_all "nothing can be recorded: $(head -1 out)"
./tally record -e cpu-clock -o live/run -- ./work threads >out 2>&1 && lose_power && [ "$(samples lost/run)" = "$(sed -n 's/^tally: \([0-9,]*\) samples in .*/\1/p' out | tr -d ,)" ] &&
	cmp live/run lost/run >>out 2>&1
check "a recording is on disk when record says so"
for line in "fold -i in.data -o live/out" "flamegraph -i in.data -o live/out.svg" "pack -i in.data -o live/packed" \
	"export -f pprof -i in.data -o live/out.pb.gz" "timeline -i in.data -o live/out.json" "stat -e task-clock -o live/counts true"; do
	file=${line##*-o live/} file=${file% true}
	# shellcheck disable=SC2086 # the words of the line
	./tally $line >out 2>&1 && lose_power && cmp "live/$file" "lost/$file" >>out 2>&1 && [ -s "lost/$file" ]
	check "… and so is what ${line%% *} wrote"
done
./tally record --switch-output=50ms -e cpu-clock -o live/many -- ./work spin 0.3 >out 2>&1 && lose_power &&
	[ "$(cat lost/many.* | cksum)" = "$(cat live/many.* | cksum)" ] && [ "$(ls lost/many.* | wc -l)" -ge 2 ]
check "… and so are all files of a switched recording"

# In the middle: the disk has a part of the file at most, or knows nothing of it yet.
cp live/run last
./tally record -e cpu-clock -F 4000 -z 0 -o live/run -- ./work spin 20 >out 2>&1 &
recorder=$!
all=yes
for _ in 1 2 3 4; do
	until [ "$(stat -c %s live/run)" -gt "${size:=20000}" ]; do sleep 0.1; done
	size=$((size + 20000))
	[ "$size" != 60000 ] || sync -f live/run
	lose_power && { cmp -s last lost/run.old || cmp -s last lost/run; } || all="no: the last recording"
	[ ! -s lost/run ] || ./tally script -i lost/run >/dev/null 2>>out || grep -q 'no usable data\|no samples' out || all="no: the part"
done
echo "$all, $(samples lost/run)" >>out
[ "$all" = yes ] && [ "$(samples lost/run)" -gt 50 ]
check "while it records, the last recording is kept, and the part on disk is readable"
command=$(pgrep -P $recorder)
kill -KILL $recorder "$command"
done_testing
