#!/bin/bash
# Programs that a command executes under the process provider: each is entered by whichever function it is
# executed, sees the environment that it would see without tally, and returns the same.  Programs that can't
# be entered run as they are.  TAP; $TALLY is the binary, $EXECUTES the test program.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1

if ! "$TALLY" stat --provider process -o counts -- "$EXECUTES" ways >out 2>err; then
	skip_all "this tally has no process provider: $(head -n 1 err)"
fi
PATH=$(dirname "$EXECUTES"):$PATH
clean() { env -i PATH="$PATH" HOME="$HOME" FIRST=1 EMPTY= "$@"; }
stat() { "$TALLY" stat --provider process -o counts "$@"; }
# same COMMAND…: prints the same and exits with the same status with tally and without
same() {
	"${before[@]}" "$@" >plain 2>&1
	status=$?
	"${before[@]}" "$TALLY" stat --provider process -o counts -- "$@" >out 2>&1
	[ $? = "$status" ] && cmp plain out
}
before=(clean)
count() { sed -n "s/^\([0-9.]*\),msec,task-clock,.*/\1/p" counts; }
between() { awk -v n="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(n >= low && n <= high) }'; }

# --- each way ----------------------------------------------------------------------------------------------------
for way in $("$EXECUTES" ways); do
	same "$EXECUTES" "$way" show
	check "$way: the program sees what it sees without tally"
	stat -x, -e task-clock -- "$EXECUTES" "$way" burn >out 2>err && between "$(count)" 55 400
	check "$way: the program is counted"
done
same "$EXECUTES" errors
check "what can't be executed has the errors of libc"
rm -f plain
same "$EXECUTES" streams
check "system(3) and popen(3) behave as libc's"

# --- the environment ---------------------------------------------------------------------------------------------
for command in env "bash -c env" "sh -c export" "env -i A=1 env" "env -u HOME sh -c env"; do
	# shellcheck disable=SC2086 # words
	same $command
	check "$command"
done
if have python3; then
	cat >environment.py <<'PY'
import os, subprocess, sys
print(sorted(os.environ.items()), sys.argv)
print(subprocess.run(["env"], capture_output=True, text=True).stdout)
print(subprocess.run("env", shell=True, env={"ONLY": "1"}, capture_output=True, text=True).stdout)
print(os.popen("env").read(), os.system("exit 3"))
print(os.waitpid(os.posix_spawn("/usr/bin/env", ["env"], {"B": "2"}), 0)[1], flush=True)
os.execvpe("env", ["env"], {"C": "3"})
PY
	same python3 environment.py
	check "python3, and what it starts"
else
	skip "python3, and what it starts" "there is no python3"
fi
if have fakeroot; then
	# its library asks a server in the library's first call
	same fakeroot sh -c 'touch owned && chown 5:6 owned && ls -ln owned && env -u FAKEROOTKEY env | grep -v TIME; exit 4'
	check "fakeroot, whose library replaces functions, too"
else
	skip "fakeroot, whose library replaces functions, too" "there is no fakeroot"
fi
other=$(libraries | sed -n 's/.*libm\.so\.6 .*x86-64.* => //p' | head -n 1)
for preload in "" "$other" "$other $other" "$other:" "/absent.so"; do
	before=(clean "LD_PRELOAD=$preload")
	# ld.so complains about a missing object for each program: for tally, too
	"${before[@]}" "$EXECUTES" system show >plain 2>/dev/null
	"${before[@]}" "$TALLY" stat --provider process -o counts -- "$EXECUTES" system show >out 2>/dev/null
	cmp plain out
	check "LD_PRELOAD of the user's: '$preload'"
done
before=(clean)

# --- programs that aren't entered --------------------------------------------------------------------------------
cat >hello.c <<'C'
#include <stdio.h>
extern char **environ;
int main(int argc, char **argv)
{
	for (char **entry = environ; *entry; entry++)
		puts(*entry);
	return argc;
}
C
uncounted() { grep -q "note: $1 programs\? ran uncounted" counts; }
# apart NAME COMPILER…: a child that is made so is not entered
apart() {
	local name=$1
	shift
	if ! "$@" -o apart hello.c 2>err; then
		skip "$name: runs as it is, and is said to be uncounted" "can't be built: $(head -n 1 err)"
		return
	fi
	same "$EXECUTES" execve "$PWD/apart" && uncounted 1 && same "$EXECUTES" posix_spawn "$PWD/apart" && uncounted 1
	check "$name: runs as it is, and is said to be uncounted"
}
apart static "${CC:-cc}" -static
apart musl musl-gcc
apart AddressSanitizer gcc -fsanitize=address
apart "clang's AddressSanitizer" clang -fsanitize=address
apart ThreadSanitizer gcc -fsanitize=thread
apart 32-bit "${CC:-cc}" -m32
"${CC:-cc}" -o hello hello.c
same "$EXECUTES" execve "$PWD/hello" && ! grep -q uncounted counts
check "a usual program is entered"
if [ "$(id -u)" = 0 ]; then
	cp hello set_user_id && chown 12345 set_user_id && chmod 4755 set_user_id
	same "$EXECUTES" execve "$PWD/set_user_id" && uncounted 1
	check "set-user-ID: runs as it is, and is said to be uncounted"
	same setpriv --reuid=12345 --regid=12345 --clear-groups "$PWD/hello" && uncounted 1
	check "another user's programs, who may not open the plan, run as they are"
	# there is no such object in the new root, which ld.so would say
	mkdir root && ldd hello | grep -o '/[^ ]*' | xargs -I '{}' cp --parents '{}' root && cp hello root
	same chroot root /hello && uncounted 1
	check "in a root without the object's file, programs run as they are"
else
	skip "set-user-ID: runs as it is, and is said to be uncounted" "only root can make it"
	skip "another user's programs, who may not open the plan, run as they are" "only root can become another user"
	skip "in a root without the object's file, programs run as they are" "only root can change the root"
fi
done_testing
