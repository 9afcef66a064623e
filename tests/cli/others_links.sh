#!/bin/bash
# No output goes through another user's link, into another user's file or FIFO, or to another user.
# It needs root, who writes to folders in which others may write.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
export LC_ALL=C.UTF-8 HOME=$scratch XDG_CACHE_HOME=$scratch/cache
[ "$(id -u)" = 0 ] || skip_all "needs root"
have python3 || skip_all "there is no python3"
have setpriv || skip_all "there is no setpriv"
chmod 755 "$scratch" && cd "$scratch" || exit 1
mkdir -m 1777 tmp && mkdir -m 700 own && mkdir -m 755 theirs && $nobody true && chown "$($nobody id -u)" theirs || exit 1
"$here/make_recording.py" idle in.data && sed 's/^/x/' /etc/hostname >text || exit 1
"$TALLY" stat -j -e task-clock -o counts.json true 2>err || { cat err; exit 1; }
others() { $nobody sh -c "cd $scratch && $1"; }

# A line is a name and a command, in which F is the output.
commands="
record|record -q -e cpu-clock -o F true
stat|stat -e task-clock -o F true
append|stat -e task-clock --append -o F true
flamegraph|flamegraph -o F in.data
fold|fold -o F in.data
annotate|annotate --html -o F -i in.data
export|export -f speedscope -o F in.data
timeline|timeline -o F in.data
pack|pack -o F in.data
compare|compare -o F counts.json counts.json
sim|sim -o F $SOURCE/examples/stacks.sim
"
if ! "$TALLY" record -q -e cpu-clock -o probe true 2>err; then
	skip "record" "$(head -n 1 err)"
	commands=$(grep -v '^record' <<<"$commands")
fi
names=$(sed -n 's/|.*//p' <<<"$commands")
tally() { timeout 30 "$TALLY" "$@" >out 2>err </dev/null; }
run() { # NAME FILE: runs the command
	local words
	words=$(sed -n "s/^$1|//p" <<<"$commands")
	# shellcheck disable=SC2086 # words
	tally ${words//F/$2}
}
# The folders' contents: names, kinds, owners, targets and bytes.
state() { (cd "$scratch" && find own tmp theirs -printf '%p %y %U %m %n %l\n' | sort; find own tmp theirs -type f -exec cat {} +) | cksum; }
fresh() { rm -rf own/* tmp/* theirs/*; }
refused() { # NAME FILE WORDS: fails with these words in the message, and changes nothing
	local before
	before=$(state)
	run "$1" "$2" && { echo "$1 succeeded" >>err; return 1; }
	[ $? != 124 ] && grep -q -- "$3" err && [ "$before" = "$(state)" ]
}
each() { # FUNCTION: runs it for all commands, and names those that fail
	local name bad=
	for name in $names; do
		fresh
		"$1" "$name" || bad="$bad $name"
	done
	[ -z "$bad" ] || echo "failed:$bad" >>err
	[ -z "$bad" ]
}

link() { # of another user, to a recording of root
	cp in.data own/target && others "ln -s $scratch/own/target tmp/out" && refused "$1" tmp/out "symbolic link"
}
check "a link of another user is not followed" each link
dangling() { others "ln -s $scratch/own/target tmp/out" && refused "$1" tmp/out "symbolic link"; }
check "… nor one that leads to no file" each dangling
folder() { others "ln -s $scratch/own tmp/folder" && refused "$1" tmp/folder/out "symbolic link"; }
check "… nor one to a folder" each folder
second() { # root's link to another user's
	others "ln -s $scratch/own/target tmp/out" && ln -s ../tmp/out own/link && refused "$1" own/link "symbolic link"
}
check "… nor one that root's own link leads to" each second
in_theirs() { others "ln -s $scratch/own theirs/folder" && refused "$1" theirs/folder/out "symbolic link"; }
check "… nor one in a folder without the sticky bit" each in_theirs

file() { others 'echo mine >tmp/out' && refused "$1" tmp/out "belongs to another user"; }
check "a file of another user in a sticky folder is neither written nor replaced" each file
fifo() { others 'mkfifo tmp/out' && refused "$1" tmp/out "another user\|not a regular file"; }
check "… nor is a FIFO opened" each fifo
their_fifo() { others 'mkfifo theirs/out' && refused "$1" theirs/out "another user\|not a regular file"; }
check "… nor in the user's own folder" each their_fifo
socket() {
	others "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"tmp/out\")'" && refused "$1" tmp/out "another user\|not a regular file"
}
check "… nor is a socket replaced" each socket

# stat writes in place.
hard() {
	cp in.data own/target && ln own/target tmp/out && before=$(cksum <own/target)
	if [ "$1" = append ] || [ "$1" = stat ]; then refused "$1" tmp/out "a recording"; else run "$1" tmp/out; fi
	[ "$(cksum <own/target)" = "$before" ]
}
check "a hard link to root's recording is not written in place" each hard
hard_text() {
	cp text own/target && ln own/target tmp/out && before=$(cksum <own/target)
	if [ "$1" = append ] || [ "$1" = stat ]; then refused "$1" tmp/out "hard links"; else run "$1" tmp/out; fi
	[ "$(cksum <own/target)" = "$before" ]
}
check "… nor one to root's text" each hard_text

# Outside of sticky folders root may replace another user's file; the result is root's.
taken() {
	others ': >theirs/out' && exec 5<theirs/out || return
	run "$1" theirs/out
	local status=$?
	# The owner may hold the old file open.
	[ "$(cat <&5)" = "" ] && exec 5<&- || return
	if [ "$1" = append ] || [ "$1" = stat ]; then [ $status != 0 ]; else [ $status = 0 ] && [ "$(stat -c %u theirs/out)" = 0 ]; fi
}
check "what replaces another user's file belongs to root, and the old file gets nothing" each taken
packed() { others ": >theirs/in" && cp in.data theirs/in && chmod 600 theirs/in && tally pack -o own/out theirs/in && [ "$(stat -c %u:%a own/out)" = 0:600 ]; }
check "a packed copy of another user's recording belongs to root" eval 'fresh; packed'

mine() { ln -s target own/link && run "$1" own/link && [ -L own/link ] && [ -s own/target ]; }
check "the user's own link is followed, also to a file that does not exist yet" each mine
mine_there() {
	: >own/target && ln -s "$scratch/own" tmp/folder && ln -s folder/target tmp/link && run "$1" tmp/link && [ -L tmp/link ] && [ -s own/target ]
}
check "… in a sticky folder, too, and through folders" each mine_there
relative() { (cd own && "$TALLY" fold -o ../tmp/./../own/out ../in.data) 2>err && [ -s own/out ]; }
check "relative paths lead where they say" eval 'fresh; relative'
check "a user's file of root in a sticky folder is replaced" eval \
	'fresh; : >tmp/out; run fold tmp/out && [ -s tmp/out ]'
check "an ordinary user writes to a sticky folder, by a link of his own" eval \
	'fresh; cp in.data tmp/in && chmod 644 tmp/in && others "ln -s $scratch/tmp/target tmp/link && $TALLY fold -o tmp/link tmp/in" 2>err && [ -s tmp/target ]'

# ---- devices and open files
check "/dev/null, /dev/stdout and /dev/fd/N are written" eval \
	'tally fold -o /dev/null in.data && "$TALLY" fold -o /dev/stdout in.data 2>err | grep -q . && "$TALLY" fold -o /dev/fd/7 in.data 7>seven 2>err && [ -s seven ]'
check "… and process substitution" eval '"$TALLY" fold -o >(cat >eight) in.data 2>err; wait $!; [ -s eight ]'
check "a FIFO of the user's own is an output" eval \
	'fresh; mkfifo tmp/out && { cat tmp/out >nine & } && tally fold -o tmp/out in.data && wait $! && [ -s nine ]'

# ---- what record and sim write beside the output
rotated() { # NAME KIND
	fresh
	cp in.data tmp/out
	case $2 in
	file) others "echo mine >tmp/$1" ;;
	link) others "ln -s $scratch/own/target tmp/$1" && cp in.data own/target ;;
	fifo) others "mkfifo tmp/$1" ;;
	esac && refused record tmp/out "can't be"
}
if grep -q '^record' <<<"$commands"; then
	for kind in file link fifo; do
		check "FILE.old that is another user's $kind stays, and so does the recording" rotated out.old $kind
		check "… and so does FILE.old~" rotated 'out.old~' $kind
	done
	kept() { fresh; cp in.data tmp/out; cp in.data tmp/out.old; run record tmp/out && cmp -s in.data tmp/out.old && [ ! -e 'tmp/out.old~' ]; }
	check "the user's own recording is kept as FILE.old in a sticky folder" kept
	switched() { fresh; others "mkdir theirs/d" && tally record -q -e cpu-clock --timestamp-filename -o theirs/d/out true && [ "$(ls theirs/d | wc -l)" = 1 ]; }
	check "a time in the name works in another user's folder" switched
	control() { fresh; others 'mkfifo tmp/ctl' && ! run_control tmp/ctl && grep -q 'another user' err; }
	run_control() { tally record -q -e cpu-clock --control "fifo:$1" -o own/out true; }
	check "another user's FIFO in a sticky folder controls nothing" control
	check "… one's own does" eval 'fresh; mkfifo tmp/ctl; run_control tmp/ctl'
fi
for kind in file link; do
	object() { fresh; case $kind in file) others 'echo mine >tmp/out.elf' ;; link) others "ln -s $scratch/own/target tmp/out.elf" ;; esac && ! run sim tmp/out && grep -q "can't be written" err && [ ! -e own/target ]; }
	check "sim's FILE.elf that is another user's $kind stays" object
done
temporary() { # the name is made up, so only the folder can be another user's link
	fresh
	others "ln -s $scratch/own tmp/folder" && ! TMPDIR=$scratch/tmp/folder tally flamegraph -o own/out.svg -- true &&
		grep -q 'symbolic link' err && [ "$(ls own)" = "" ]
}
check "a folder of temporary files behind another user's link is not used" temporary
done_testing
