#!/bin/bash
# Small files that stand for large ones, files that change while they are read, and files that are not
# what their names say: tally ends with an error that names the limit, and takes little memory.
. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/within.sh"
cd "$scratch" || exit 1
export PYTHONPATH=$SOURCE/tests/cli PYTHONDONTWRITEBYTECODE=1

# ---- the variable

! TALLY_LIMITS=recordings=8G "$TALLY" report -i none >out 2>err && says "there is no limit 'recordings'" &&
	says 'the limits are recording, compressed'
check "an unknown limit is an error that lists the limits"

# ---- folders that are recordings

cat >make.py <<'PY'
from make_recording import *
events = [Event("cpu-clock", [1], type=1, config=0, sample_type=IP | TID | TIME | PERIOD | IDENTIFIER)]
records = []
for i in range(100000): # rounds, so that tally need not read everything before it shows anything
    records.append(record("SAMPLE", u64(1, 0x401000) + u32(5, 5) + u64(10 + i, 1000), 2))
    if i % 1000 == 0:
        records.append(record("FINISHED_ROUND", b""))
write_file("large.data", events, records, common_features(events))
write_file("theirs.data", events, records, common_features(events))
write_file("small.data", events, records[:1000], common_features(events))
PY
python3 make.py

# KIND PATH
make_special() {
	case $1 in
	fifo) mkfifo "$2" ;;
	folder) mkdir "$2" ;;
	socket) python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$2" ;;
	device) ln -s /dev/zero "$2" ;;
	esac
}
for kind in fifo folder socket device; do
	for name in data data.0; do
		rm -rf folder && mkdir folder
		[ $name = data ] || cp small.data folder/data
		make_special $kind folder/$name
		bad=
		for view in report script 'annotate -i' pack timeline 'export -f speedscope -o -'; do
			# shellcheck disable=SC2086 # several words
			timeout 60 "$TALLY" $view folder >out 2>err
			status=$?
			failed && says "'$name' in the directory is no regular file" || bad="$bad $view($status)"
		done
		[ -z "$bad" ] || echo "$bad" >>err
		[ -z "$bad" ]
		check "'$name' in a folder may not be a $kind"
	done
done

# ---- recordings that shrink

# FILE: truncates it when `script` has begun to read it.
truncated() {
	{ "$TALLY" script -i "$1" 2>err; echo $? >status; } | { head -c 65536 >/dev/null; : >"$1"; cat >/dev/null; }
	status=$(cat status)
}
# The reader keeps 256 KiB, and the pipe 64: it can't have read 4 MB when they are full.
truncated large.data
failed && says "large.data: it was truncated meanwhile" && [ "$(grep -c 'meanwhile' err)" = 1 ]
check "a user's own recording that is truncated meanwhile is an error, not a signal"

if [ "$(id -u)" = 0 ]; then
	chown 65534 theirs.data
	"$TALLY" script -i theirs.data >whole 2>err
	{ "$TALLY" script -i theirs.data 2>err; echo $? >status; } | { head -c 65536; : >theirs.data; cat; } >out
	[ "$(cat status)" = 0 ] && cmp -s whole out
	check "another user's recording is copied: it may be truncated meanwhile"

	truncate -s 6G theirs.data
	head -c 104 small.data | dd of=theirs.data conv=notrunc status=none
	within 100 "$TALLY" report -i theirs.data && failed && says 'TALLY_LIMITS=recording=8G' &&
		says 'theirs.data: another user can change it, so it must fit into memory, and it is larger than 4.0 GiB'
	check "another user's recording is not copied above the limit"

	truncate -s 3G theirs.data
	within 200 "$TALLY" report -i theirs.data && failed
	check "holes of a sparse recording take no memory"
else
	skip "another user's recording is copied: it may be truncated meanwhile" "needs root"
	skip "another user's recording is not copied above the limit" "needs root"
	skip "holes of a sparse recording take no memory" "needs root"
fi

# ---- pipes and compressed files

piped() { # VIEW
	python3 - "$1" <<'PY'
import os, resource, subprocess, sys
env = dict(os.environ, TALLY_LIMITS="recording=20M,text=20M")
view = subprocess.Popen([os.environ["TALLY"], *sys.argv[1].split()], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                        stderr=open("err", "wb"), env=env)
try:
    view.stdin.write(open("small.data", "rb").read())
    for i in range(400):
        view.stdin.write(bytes(1 << 20))
    sys.exit("it read everything")
except BrokenPipeError:
    pass
view.wait(60)
sys.exit(view.returncode != 1)
PY
}
bad=
for view in 'report -i -' 'script -i -' 'fold -' 'flamegraph -o - -'; do
	piped "$view" && says 'it is larger than 20 MiB' && says 'TALLY_LIMITS=recording=1G' || bad="$bad $view"
done
[ -z "$bad" ] || echo "$bad" >>err
[ -z "$bad" ]
check "a seekable recording in a pipe ends at the limit"

python3 -c 'print("main;work 1\n" * 4000000, end="")' >long.folded
TALLY_LIMITS=text=10M within 200 "$TALLY" fold long.folded && failed &&
	says 'long.folded: it must fit into memory, and it is larger than 10 MiB' && says 'TALLY_LIMITS=text=1G'
check "text ends at the limit"

for packer in gzip xz zstd; do
	have $packer || { skip "a bomb of $packer ends at the limit" "no $packer here"; continue; }
	bad=
	head -c 100M /dev/zero | cat small.data - | $packer -c >bomb
	head -c 100M /dev/zero | $packer -c >bomb.folded
	for view in 'report -i bomb' 'fold bomb' 'fold bomb.folded'; do
		# shellcheck disable=SC2086 # several words
		TALLY_LIMITS=unpacked=64M within 250 "$TALLY" $view && failed &&
			says 'it is compressed, and unpacks to more than 64 MiB' && says 'TALLY_LIMITS=unpacked=1G' || bad="$bad $view"
	done
	[ -z "$bad" ] || echo "$bad" >>err
	[ -z "$bad" ]
	check "a bomb of $packer ends at the limit"
done

# ---- compressed records

if have zstd; then
	cat >compressed.py <<'PY'
import subprocess
from make_recording import *
event = Event("cpu-clock", [1], type=1, config=0, sample_type=IP | TID | TIME | PERIOD | IDENTIFIER)
def write(path, plain):
    packed = subprocess.run(["zstd", "-3", "-c"], input=plain, stdout=subprocess.PIPE, check=True).stdout
    write_file(path, [event], [record("COMPRESSED", packed[at:at + 65000]) for at in range(0, len(packed), 65000)],
               common_features([event]) | {SPECIAL["compressed"]: u32(1, 1, 3, 10, 1 << 20)})
write("held.data", b"".join(record("SAMPLE", u64(1, 0x401000) + u32(5, 5) + u64(10 + i, 1000), 2) for i in range(400000)))
write("bomb.data", record("SAMPLE", u64(1, 0x401000) + u32(5, 5) + u64(10, 1000), 2) * 3000000)
PY
	python3 compressed.py
	TALLY_LIMITS=held=10M within 150 "$TALLY" report -i held.data && failed &&
		says "the recording's records can't be put in order: those that must be held are larger than 10 MiB" &&
		says 'TALLY_LIMITS=held=1G'
	check "records that are held have a limit"
	within 400 "$TALLY" report -i bomb.data && says 'TALLY_LIMITS=compressed=2048G'
	check "a bomb of compressed records ends at the limit"
else
	skip "compressed records have limits" "no zstd here"
fi

done_testing
