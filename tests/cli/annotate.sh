#!/bin/bash
# `tally annotate` gives each instruction the same share as `perf annotate`, draws jumps, reports
# what is missing, and writes pages that hostile names can't break.  TAP; $TALLY is the binary,
# $ANNOTATED the program of annotated.c, $SHARES that of shares.c.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export PAGER=cat NO_COLOR= HOME=$scratch LC_ALL=C.UTF-8
annotate() { timeout 60 "$TALLY" annotate -i tally.data "$@" >out 2>err; }
contains() { grep -qe "$1" "${2:-out}"; }
lacks() { ! grep -qe "$1" "${2:-out}"; }

# Records crunch, which takes nearly all samples, and a few functions that surely have samples too.
# shellcheck disable=SC2016
if ! timeout 60 "$TALLY" record -q -e cpu-clock -F 1999 -o tally.data -- sh -c '"$1" 40000 && "$2" 10' both "$ANNOTATED" "$SHARES" >out 2>err; then
	echo "1..0 # SKIP nothing can be recorded here"
	exit 0
fi
annotate crunch
if contains 'no disassembly: .*libLLVM'; then
	echo "1..0 # SKIP there is no libLLVM"
	exit 0
fi
check "the function's share is shown with its sampling error" contains '^\(9[0-9]\|100\)\.[0-9]*% ±[0-9.]* of the [0-9,]* samples of cpu-clock'
check "the head names the event, and says which instructions count" contains 'samples count for the instruction before their address'
annotate --raw-addresses crunch
check "… or that the addresses do" contains 'samples count for their address, which is behind'
annotate crunch
check "hot lines are listed" contains '^ *[0-9.]*% ±.*annotated.c:[0-9]*  '
check "inlined code is marked" contains 'inlined: mix'
case $(uname -m) in x86_64) jump=j ;; *) jump=b ;; esac
check "jumps go to labels" contains " $jump[a-z.]* .*L[0-9]"
check "arrows are drawn" contains '╭.*─'
LC_ALL=C annotate crunch
check "without UTF-8 they are ASCII" lacks '╭'
check "… also on that view" contains '\.--.* L[0-9]*\|`-'
annotate --no-source crunch
sed 1,/^$/d out >instructions
check "--no-source leaves source out" lacks 'hash \*=' instructions
check "… and keeps instructions" contains "L1:" instructions
annotate -l crunch
check "-l shows line numbers" contains 'annotated.c:[0-9]*  *hash'
annotate -n crunch
check "-n shows numbers of samples" contains '^ *[0-9.]*% ±[ 0-9.]* *[0-9][0-9]* '
annotate --no-asm crunch
check "--no-asm shows source lines with shares" contains '^ *[0-9.]*% ±.* [0-9]*  .*table\[i\]'
annotate --percent-limit 5 crunch
check "--percent-limit leaves out lines far from hot ones" contains '⋮ [0-9]* instruction'
if [ "$(uname -m)" = x86_64 ]; then
	annotate -M intel crunch
	check "-M intel" contains 'dword ptr \['
fi
annotate
check "the hottest function is the default, also if it is inlined" contains '^mix (inlined into crunch) '
check "… with its own instructions" eval 'contains "⋮ [0-9,]* instructions* of crunch" && lacks "inlined: mix"'
annotate --no-inline
check "… --no-inline: the hottest symbol" contains '^crunch '
annotate --all-hot 2
check "--all-hot shows several functions" test "$(grep -c '^[0-9.]*% ±.* \(is\|are\) in it' out)" = 2

annotate --no-asm crunch
path=$(sed -n 's/^\(\/.*annotated\.c\)$/\1/p' out | head -n 1)
check "unchanged source is shown without a remark" lacks 'since the recording\|not found'
mkdir -p "root$(dirname "$path")"
cp "$here/annotated.c" "root$path"
annotate --symfs root crunch
check "a warning says that the source changed since the recording" contains 'annotated.c has changed since the recording: its lines may be wrong'
annotate --symfs root --html -o changed.html crunch
check "… also on a page" contains 'annotated.c has changed since the recording' changed.html
rm -r root
sed 's/annotated\.c/annotated.x/g' "$ANNOTATED" >moved
chmod +x moved
cp tally.data first.data
if timeout 60 env XDG_CACHE_HOME="$scratch/moved.cache" HOME="$scratch/moved.home" "$TALLY" record -q -e cpu-clock -F 1999 -o tally.data -- ./moved >out 2>err &&
	XDG_CACHE_HOME=$scratch/moved.cache HOME=$scratch/moved.home annotate -l crunch && contains 'annotated\.x:[0-9]'; then
	check "a warning says that the source is missing" contains '^source not found: .*annotated\.x$'
	XDG_CACHE_HOME=$scratch/moved.cache HOME=$scratch/moved.home annotate -o moved.html crunch
	check "… also on a page" contains 'source not found: .*annotated\.x' moved.html
else
	skip "missing source" "the program's paths are compressed"
fi
mv first.data tally.data

if have strip && strip -o nameless "$ANNOTATED" && timeout 60 "$TALLY" record -q -e cpu-clock -F 999 -o nameless.data -- ./nameless >out 2>err; then
	timeout 60 "$TALLY" annotate -i nameless.data '[nameless]' >out 2>err
	check "without a function's name, an object without symbols means its hottest function" eval "contains '^\[nameless+0x' && contains '^9[0-9].*% ±\|^100.*% ±'"
	timeout 60 "$TALLY" annotate -i nameless.data no_such_function >out 2>err
	check "… and an error gives that function's name" contains 'the hottest are \[nameless+0x' err
else
	skip "without a function's name, an object without symbols means its hottest function" "no strip"
fi
annotate no_such_function
check "the error for an unknown function names the hottest one" contains 'hint: the hottest are .*crunch' err
annotate crun
check "… or the one with a similar name" contains "hint: did you mean 'crunch'" err
cat >ends.cpp <<'C'
template <class T> struct holder {
	__attribute__((noinline, noclone)) static long alpha(long n) { volatile long s = 0; for (long i = 0; i < n; i++) s += i; return s; }
	__attribute__((noinline, noclone)) static long omega(long n) { volatile long s = 0; for (long i = 0; i < n; i++) s ^= i; return s; }
};
int main() { return holder<long>::alpha(100000000) + holder<long>::omega(50000000) + holder<int>::omega(50000000) == 7; }
C
if c++ -O1 -g -w ends.cpp -o ends 2>out && timeout 60 "$TALLY" record -q -e cpu-clock -F 999 -o ends.data -- ./ends >out 2>&1; then
	timeout 60 "$TALLY" annotate --stdio -i ends.data alpha >out 2>err
	check "the last part of a name is enough" contains '^holder<long>::alpha'
	timeout 60 "$TALLY" annotate --stdio -i ends.data omega >out 2>err
	check "… unless several functions have it" contains "no samples in a function 'omega'" err
	timeout 60 "$TALLY" annotate --stdio --no-demangle -i ends.data _ZN6holderIlE5alphaEl >out 2>err
	check "--no-demangle: the function is found and shown by its mangled name" contains '^_ZN6holderIlE5alphaEl'
else
	skip "the last part of a name is enough" "no C++ compiler"
	skip "--no-demangle: the function is found and shown by its mangled name" "no C++ compiler"
fi
timeout 60 "$TALLY" record -q --call-graph dwarf -e cpu-clock -F 499 -o stacks.data -- "$ANNOTATED" >out 2>err
timeout 60 "$TALLY" annotate -i stacks.data main >out 2>err
check "for a function without samples of its own, the message says that only its callees have some" eval "contains \"no samples are in 'main' itself; [0-9.]*% are in what it calls\" err || contains '^main '"
annotate --object annotated crunch
check "--object selects the function's object" contains '^crunch '
annotate --dso annotated crunch
check "--dso says that it leaves samples out" contains '^samples other than --dso annotated are left out'
annotate --object libc.so.6 crunch
check "… and shows no other object's function" contains "no samples in a function 'crunch' of libc.so.6" err
if annotate no_such_function; then not_ok "the exit status"; else ok "the exit status"; fi

TALLY_LIBLLVM=/nonexistent.so annotate crunch
check "without libLLVM the message names the package" contains 'apt-get install libllvm'
check "… and source lines have shares" contains '^ *[0-9.]*% ±.* [0-9]*  .*table\[i\]'

"$TALLY" annotate -i tally.data -o page.json crunch >out 2>err
check "-o with text into a .json file is refused" eval 'grep -q "without --json the output is .html" err && [ ! -e page.json ]'
check "-j writes valid JSON" eval '"$TALLY" annotate -i tally.data -j crunch | python3 -m json.tool >out 2>err'
if have perf && have objdump && have python3 && perf record -q -e cpu-clock -F 1999 -o perf.data "$ANNOTATED" >out 2>err; then
	timeout 120 perf annotate --stdio -i perf.data crunch >perf.txt 2>/dev/null </dev/null
	"$TALLY" annotate --raw-addresses -j -i perf.data crunch >tally.json 2>err
	if "$here/compare_annotate.py" perf.txt tally.json >out; then
		ok "percentages are perf's ($(tail -n 1 out))"
	else
		not_ok "percentages are perf's"
	fi
else
	skip "percentages are perf's" "needs perf, which may record, objdump and python3"
fi

annotate -o page.html crunch
check "--html writes a page" contains '<svg' page.html
check "the page loads nothing from the network" lacks 'https\?:\|src=\|@import\|url(' page.html
check "source text can't end the page's script" lacks '<b>not markup' page.html
check "source is escaped" contains '&lt;/script&gt;&lt;b&gt;not markup' page.html
if have objcopy && [ "$(uname -m)" = x86_64 ]; then
	name=$'<script>alert("1")</script>\e[31m'
	objcopy --redefine-sym crunch="$name" "$ANNOTATED" hostile
	timeout 60 "$TALLY" record -q -o tally.data -- ./hostile >out 2>err
	annotate -o hostile.html
	check "a function's name can't break out of a page" lacks '<script>alert' hostile.html
	check "… it is in the page, escaped" contains '&lt;script&gt;alert' hostile.html
	annotate
	check "escape sequences for terminals are made harmless" lacks $'\e'
	cp tally.data packed.data
	timeout 60 "$TALLY" record -q --no-pack -o tally.data -- ./hostile >out 2>err
	mv hostile hostile.old
	mkdir none # perf has stored a copy in ~/.debug
	timeout 60 "$TALLY" annotate --no-inline -i packed.data --buildid-dir none >out 2>err
	check "if the program is gone, the code comes from the recording" contains ' L1:'
	annotate --buildid-dir none
	check "… or a message says that it is missing" contains 'no disassembly: .*is not on this machine'
	check "… and shows no instructions" lacks ' L1:'
	check "… and the message says what that means for source lines" contains 'source lines either: the program is not here'
else
	skip "hostile names" "needs objcopy on x86-64"
fi
if have strip && [ "$(uname -m)" = x86_64 ]; then
	strip -o bare "$ANNOTATED"
	timeout 60 "$TALLY" record -q -o tally.data -- ./bare >out 2>err
	annotate
	check "a stripped program's functions are told apart by their unwind rules" contains '^\[bare+0x[0-9a-f]*\]  '
	check "… and disassembled" contains ' L1: '
	name=$(sed -n '1s/  .*//p' out)
	annotate --no-source "$name"
	check "… and can be annotated by the names they get" grep -qF -- "$name  " out
	annotate --no-asm "$name"
	check "… with a message that it has no debug information" contains 'source lines: it has no debug information'
else
	skip "a stripped program" "needs strip on x86-64"
fi
if have node && echo 'function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } for (let i = 0; i < 15; i++) fib(30)' >fib.js &&
	timeout 60 "$TALLY" record -q -o tally.data -- node --perf-prof fib.js >out 2>err && ls jit-*.dump >/dev/null 2>&1; then
	annotate
	check "a JIT's code comes from its dump" contains '^JS:fib .*jit\.dump'
	check "… and is disassembled" contains '^ *[0-9.]*% ±.* [0-9a-f]*  .*\(mov\|push\|cmp\|test\|ldr\|str\)'
else
	skip "a JIT's code" "needs node that can be recorded"
fi
echo "1..$number"
