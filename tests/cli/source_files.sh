#!/bin/bash
# Which source files annotate reads: a line table names any path, and the output may be passed on.
# TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch NO_COLOR=1
have gcc || skip_all "there is no gcc"
tally() { timeout 60 "$TALLY" "$@"; }

# Makes FOLDER/NAME.data, and the program NAME, whose function `hot` is in the file PATH.
make_program() { # NAME PATH
	cat >w.c <<C
volatile long x;
#line 1 "$2"
__attribute__((noinline)) void hot(void) { for (long i = 0; i < 30000000; i++)
x += i; }
#line 90 "other.c"
int main(void) { hot(); return 0; }
C
	gcc -g -O1 -o "$1" w.c && tally record -q -e cpu-clock -o "$1.data" "./$1" 2>err >out
}
lines() { printf '%s:first\n%s:second\n' "$1" "$1"; } # of a source file
shown() { # NAME WORD [OPTION…]: how many formats contain the word: of JSON, HTML, text
	local count=0
	for format in "-j" "--html -o -" "--stdio"; do
		# shellcheck disable=SC2086
		tally annotate $format "${@:3}" -i "$1.data" hot >"$scratch/out" 2>"$scratch/err" </dev/null || return
		! grep -q "$2" "$scratch/out" || count=$((count + 1))
	done
	[ $count = "${expected:-0}" ]
}
hidden() { expected=0 shown "$@" && grep -q "other users can't read.*their lines are left out" "$scratch/err" && grep -q '^hint: --source DIR' "$scratch/err"; }
visible() { expected=3 shown "$@" && ! grep -q "left out" "$scratch/err"; }

mkdir -m 700 private && mkdir -m 755 public && chmod 700 . || exit 1
lines SECRET >secret && chmod 600 secret
lines OPEN >public/open && chmod 644 public/open
lines INSIDE >private/inside && chmod 644 private/inside
if ! make_program secret_named "$scratch/secret"; then skip_all "$(head -n 1 err)"; fi

check "a file that others can't read is not embedded" hidden secret_named SECRET
check "… nor with the recording alone" eval 'rm secret_named && hidden secret_named SECRET'
check "… unless --source names its folder" visible secret_named SECRET "--source=$scratch"
check "… by a word of its own, and by a relative path" eval 'visible secret_named SECRET --source "$scratch" && visible secret_named SECRET --source ..  --source .'
check "… and not another one" hidden secret_named SECRET --source "$scratch/public"
check "--source of what is no folder is an error" eval '! tally annotate --source="$scratch/none" -i secret_named.data hot >out 2>err && grep -q "no folder" err'
check "… and without a folder it is perf's option" eval 'tally annotate --source --stdio -i secret_named.data hot >out 2>err && ! grep -q SECRET out'

check "a link to it doesn't help" eval 'ln -s "$scratch/secret" public/link && make_program linked "$scratch/public/link" && hidden linked SECRET'
check "… not even below --source" hidden linked SECRET --source "$scratch/public"
check "… nor does another name of it" eval 'ln secret public/name && make_program named "$scratch/public/name" && hidden named SECRET'

check "a file that others can read is shown" eval 'make_program open "$scratch/public/open" && visible open OPEN'
check "… also by a relative path" eval 'make_program near "public/open" && visible near OPEN'
elsewhere() { (cd / && "$@"); }
check "… but from elsewhere the modes of all its folders count" elsewhere hidden "$scratch/open" OPEN
check "… and --source may name all files" elsewhere visible "$scratch/open" OPEN --source /
check "a folder that others can't enter hides what is in it" eval 'make_program inside "$scratch/private/inside" && hidden inside INSIDE'
check "… but not from within" eval 'cd private && visible ../inside INSIDE; status=$?; cd ..; [ $status = 0 ]'
check "… nor below --symfs" eval 'mkdir -p "root$scratch/private" && cp private/inside "root$scratch/private/" && visible inside INSIDE --symfs root'

for kind in fifo device folder; do
	case $kind in
	fifo) path=$scratch/fifo; mkfifo "$path" ;;
	device) path=/dev/zero ;;
	folder) path=$scratch/public ;;
	esac
	check "a $kind is not opened as source" eval 'make_program "of_$kind" "$path" && tally annotate --stdio --source / -i "of_$kind.data" hot >out 2>err && grep -q hot out'
done
if have script; then
	check "a terminal shows each file that the user may read" eval \
		'script -qec "TERM=xterm timeout 60 \"$TALLY\" annotate --stdio -i secret_named.data hot" /dev/null </dev/null >out 2>err && grep -q SECRET out'
else
	skip "a terminal shows each file that the user may read" "needs script"
fi
if [ "$(id -u)" = 0 ] && have setpriv && have strace; then
	check "no device is opened" eval 'strace -f -e trace=openat,open -o calls "$TALLY" annotate --stdio -i of_device.data hot >out 2>err; ! grep -q "\"zero\"\|/dev/zero\"" calls && grep -q "\"dev\"" calls'
fi
done_testing
