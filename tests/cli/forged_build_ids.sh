#!/bin/bash
# A file that claims another's build-id never fills the cache's entry from which the other one is
# named; and the cache lies nowhere but in the user's own folder.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch XDG_CACHE_HOME=$scratch/cache DEBUGINFOD_URLS=
unset TALLY_CACHE_BYTES
have gcc || skip_all "there is no gcc"
have objcopy || skip_all "there is no objcopy"
mkdir -m 700 cache
tally() { timeout 60 "$TALLY" "$@"; }
blobs() { ls cache/tally 2>/dev/null | grep -c -- "$1"; }

# Two programs whose sizes and build-ids are equal.
id=0x00112233445566778899aabbccddeeff00112233
cat >real.c <<'C'
#include <time.h>
volatile long x;
static inline __attribute__((always_inline)) void honest_inline(long n) { for (long i = 0; i < n; i++) x += i; }
__attribute__((noinline)) void honest(void) { honest_inline(100000); }
int main(void) { while (clock() < 200 * (CLOCKS_PER_SEC / 1000)) honest(); return 0; }
C
build() { # OPTION…
	for name in real forged; do
		if [ $name = forged ]; then sed 's/honest/forged/g' real.c >forged.c; fi
		gcc -O1 -Wl,--build-id=$id "$@" -o $name $name.c 2>err || return
	done
	[ "$(stat -c %s real)" = "$(stat -c %s forged)" ] || { echo "sizes differ" >err; return 1; }
}
record() {
	for name in real forged; do tally record -q --no-pack -e cpu-clock -g -o $name.data "./$name" 2>err || return; done
}
build -g || skip_all "$(head -n 1 err)"
record || skip_all "$(head -n 1 err)"
# The report of the real program, after one of the forged program.
names() { tally report --stdio -g real.data 2>err >out; }
forge() { rm -rf cache/tally; tally report --stdio -g forged.data >out 2>err && grep -q forged out; }
is_honest() { names && grep -q honest out && ! grep -q forged out; }

kept() { rm -rf cache/tally; is_honest && [ "$(blobs '\.lines\.')" -ge 1 ] && cp out first && is_honest && cmp -s out first; }
check "lines and inlined functions are cached" kept
check "a program that claims a build-id gives no lines to the other one" eval 'forge && is_honest && grep -q honest_inline out'
both() { [ "$(ls cache/tally/"${id#0x}".lines.* | wc -l)" = 2 ]; }
check "… each has an entry of its own" both

# The same path: first the forged program, then the real one.  Times and size are the same.
in_place() {
	rm -rf cache/tally && cp -p real saved && cat forged >real && touch -r saved real && names && ! grep -q honest out &&
		cat saved >real && touch -r saved real && is_honest
}
check "a program that was written anew in place, with its old time, is read anew" in_place

debug() { # separate debug files, by link
	for name in real forged; do
		objcopy --only-keep-debug $name $name.debug && objcopy --strip-all --add-gnu-debuglink=$name.debug $name || return
	done 2>err
}
check "separate debug files don't fill each other's entries" eval 'debug && record && forge && is_honest && grep -q honest_inline out'

# Split units are files beside the object, whose ids are claims, too.
split_size() { # the size of the entry for a program with a split unit, which is read
	rm -rf cache/tally && tally report --stdio -g split.data >out 2>err && grep -q honest_inline out && stat -c %s cache/tally/"${id#0x}".lines.*
}
if gcc -O1 -g -gsplit-dwarf -Wl,--build-id=$id -o split real.c 2>err && tally record -q --no-pack -e cpu-clock -g -o split.data ./split 2>err; then
	size=$(split_size)
	check "split units of the user's own are cached" test "${size:-0}" -gt 0
	if [ "$(id -u)" = 0 ]; then
		check "… those of another user are not" eval 'chown 12345 *.dwo && theirs=$(split_size) && [ "$theirs" -lt "$size" ]'
	else
		skip "… those of another user are not" "needs root"
	fi
else
	skip "split units of the user's own are cached" "$(head -n 1 err)"
fi

# ---- symbols of large objects
for name in real forged; do
	sed -i '1i char pad[9 << 20] = { 1 };' $name.c
done
large() { gcc -O1 -Wl,--build-id=$id -o real real.c && gcc -O1 -Wl,--build-id=$id -o forged forged.c && record; }
check "symbols of large objects are cached" eval 'large && rm -rf cache/tally && is_honest && [ "$(blobs "${id#0x}.symbols")" = 1 ]'
check "… and don't come from a program that claims the build-id" eval 'forge && is_honest'
if [ "$(id -u)" = 0 ]; then
	theirs() { chown 12345 real && rm -rf cache/tally && is_honest && [ "$(blobs "${id#0x}")" = 0 ]; }
	check "nothing is cached of another user's program" theirs
	writable() { chown 0 real && chmod 777 real && rm -rf cache/tally && is_honest && [ "$(blobs "${id#0x}")" = 0 ]; }
	check "… or of one that everyone may write" writable
else
	skip "nothing is cached of another user's program" "needs root"
fi

# ---- the kernel's symbols
other=ffeeddccbbaa99887766554433221100ffeeddcc
copy() { # a copy of kallsyms that claims to be another kernel's
	mkdir -p ".debug/.build-id/ff/${other#ff}" && sed -E '/ _s?text$/! s/ [tT] / T forged_/' /proc/kallsyms >".debug/.build-id/ff/${other#ff}/kallsyms"
	rm -rf cache/tally && tally report --stdio --sort sym all.data >out 2>err
	grep -q forged_ out && [ "$(ls cache/tally 2>/dev/null | grep -c "^$other")" = 0 ]
}
if [ "$(id -u)" = 0 ] && tally record -q --no-pack -z 0 -e cpu-clock -o all.data -- sh -c 'i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done' 2>err && have python3 &&
	python3 - all.data "$other" 2>err <<'P'; then
# Replaces the kernel's build-id in the recording.
import re, sys
running = open("/sys/kernel/notes", "rb").read()
at = running.index(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0") + 16
data = open(sys.argv[1], "rb").read()
if running[at:at + 20] not in data: sys.exit("the recording lacks the kernel's build-id")
open(sys.argv[1], "wb").write(data.replace(running[at:at + 20], bytes.fromhex(sys.argv[2])))
P
	check "a copy of kallsyms fills no entry of the kernel that it claims to be" copy
else
	skip "a copy of kallsyms fills no entry of the kernel that it claims to be" "$(head -n 1 err)"
fi

# ---- the folder
if [ "$(id -u)" = 0 ] && have setpriv; then
	mkdir -m 755 home roots && : >roots/keep.blob && chown 12345 home && chmod 711 "$scratch"
	as_user() { setpriv --reuid=12345 --regid=12345 --clear-groups "$@"; }
	stays() { [ "$(ls roots)" = keep.blob ] && [ "$(stat -c %a roots)" = 755 ]; }
	as_user sh -c "mkdir home/.cache && ln -s $scratch/roots home/.cache/tally"
	in_home() { HOME=$scratch/home; unset XDG_CACHE_HOME; export HOME; "$@"; }
	as_root() { # nothing of root's is to be touched either: its own cache may be full
		XDG_CACHE_HOME=$scratch/home/.cache tally report --stdio -g forged.data >out 2>err && stays
	}
	check "root follows no link in another user's folder of caches" as_root
	check "… nor clears what it leads to" eval 'XDG_CACHE_HOME=$scratch/home/.cache tally cache --clear >out 2>err; stays && grep -q "^no cache: " out'
	as_user sh -c "rm home/.cache/tally && mkdir home/.cache/tally"
	there() { XDG_CACHE_HOME=$scratch/home/.cache tally cache >out 2>err; grep -q "^no cache: .*another user" out && [ -z "$(ls home/.cache/tally)" ]; }
	check "… nor uses another user's own folder" there
	linked() { as_user sh -c "ln -s $scratch/roots home/link"; XDG_CACHE_HOME=$scratch/home/link tally cache >out 2>err; grep -q '^no cache: ' out && stays; }
	check "… nor a folder of root's behind another user's link" linked
else
	skip "root follows no link in another user's folder of caches" "needs root"
fi
modes() { rm -rf cache && mkdir -m 700 cache && (umask 0; tally cache >out 2>err) && [ "$(stat -c %a cache/tally)" = 700 ] && chmod 755 cache/tally && tally cache >out 2>err && [ "$(stat -c %a cache/tally)" = 700 ]; }
check "the folder has the mode 700" modes
writable_folder() { chmod 777 cache/tally && tally cache >out 2>err && grep -q '^no cache: other users may write to' out; }
check "… and is not used if others may write to it" writable_folder
own_link() { rm -rf cache && mkdir -m 700 elsewhere && ln -s elsewhere cache && tally cache >out 2>err && [ -d elsewhere/tally ]; }
check "a folder of caches may be a link of the user's own" own_link
tally_link() { rmdir elsewhere/tally && mkdir other && ln -s ../other elsewhere/tally && tally cache >out 2>err && grep -q "^no cache: .*tally can't be used" out && [ -z "$(ls other)" ]; }
check "… tally's folder in it may not" tally_link
done_testing
