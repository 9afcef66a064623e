#!/bin/bash
# `make install` installs the command, the library for other programs, and the documents.  TAP;
# $BUILD is the build directory, $SANITIZE and $OPTIMIZATION its -fsanitize and -O, $CC and $CXX its
# compilers.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8

# run EXPECTED_STATUS command…: stdout and stderr go to ./out
run() { expected=$1; shift; "$@" >out 2>&1; status=$?; [ "$status" = "$expected" ] || { echo "status $status" >>out; false; }; }
has() { grep -qF -- "$1" out; }

run 0 meson install -C "$BUILD" --no-rebuild --destdir "$scratch/a b"
check "make install works below a directory, with or without blanks in its name"
mv "a b" root
installed() { (cd "$scratch/root" && find . -path "*/$1"); }
here() { find "$scratch/root" -path "*/$1" | head -1; }
find root >out
for file in bin/tally include/tally/counter.h libtally.so libtally.a pkgconfig/tally.pc include/tally/engine.h \
	libtallyengine.a pkgconfig/tally-engine.pc doc/tally/LICENSE doc/tally/CHANGELOG.md doc/tally/architecture.md \
	doc/tally/porting.md doc/tally/examples/self_count.c doc/tally/examples/skeleton.c man/man1/tally.1 \
	man/man1/tally-stat.1 bash-completion/completions/tally zsh/site-functions/_tally vendor_completions.d/tally.fish; do
	[ -n "$(installed "$file")" ]
	check "$file is installed"
done
[ -z "$(find root -name 'test_*' -o -name '*refuse*' -o -path '*/bin/*' ! -name tally -type f)" ]
check "no other program is installed"
tally=$(here bin/tally)

# --- the command -------------------------------------------------------------------------------------------------
run 0 "$tally" --version && grep -qx 'tally [0-9]*\.[0-9]*\.[0-9]*' out
check "the installed tally prints its version"
readelf -d "$tally" >out
if [ "$SANITIZE" = none ] && [ "$OPTIMIZATION" != 0 ]; then
	unwanted=$(sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' out | grep -vE '^libc\.so\.[0-9]+$')
	[ -z "$unwanted" ]
	check "it starts with only libc"
else
	skip "it starts with only libc" "sanitizers bring libraries of their own, -O0 libm"
fi
LD_DEBUG=files run 0 "$tally" stat -e task-clock true
grep -q 'calling init: .*libc' out && ! grep -E 'calling init: .*lib(elf|zstd|z)\.so' out
check "stat loads no library that it does not need"
mkdir broken && : >broken/libelf.so.1
LD_LIBRARY_PATH=$PWD/broken run 1 "$tally" report -i none.data && grep -q '^tally: .*libelf.so.1: file too short' out
check "a library that can't be loaded ends a command that needs it, as the dynamic linker does"
LD_LIBRARY_PATH=$PWD/broken run 0 "$tally" help
check "a command that does not need it works"
grep -qE 'RPATH|RUNPATH' out
[ $? = 1 ]
check "it contains no path of the build"

if [ -n "$(installed simulated/vsim-launcher)" ]; then
	run 0 "$tally" stat --provider simulated -e instructions true && has '(exact, user)'
	check "it finds the simulated PMU beside it, also after the tree was moved"
else
	run 1 "$tally" stat --provider simulated true && has 'there is no simulated PMU here'
	check "it says that there is no simulated PMU"
fi
if [ -n "$(installed process/libtally-process.so)" ]; then
	run 0 "$tally" stat --provider process true && has '(process)'
	check "it finds the preloaded object beside it, also after the tree was moved"
else
	skip "it finds the preloaded object beside it" "there is none for this machine"
fi
run 0 "$tally" help && [ -z "$(sed -n 's/^  \([a-z-]*\)  .*/\1/p' out | sort | uniq -d)" ]
check "help lists each command once"
run 2 "$tally"
check "without a command, tally shows the help and exits with the status of wrong use"
commands=$("$tally" help | sed -n 's/^  \([a-z-]*\)  .*/\1/p')
for command in $commands; do
	[ "$command" = perf ] && continue # its help is in perf's form
	run 0 "$tally" "$command" --help && [ "$(head -1 out | cut -d' ' -f1-3)" = "usage: tally $command" ] &&
		{ [ "$command" = help ] || [ "$command" = completion ] || [ "$command" = run ] || grep -qE '^  (-.|   ) ?.*--[a-z]' out; }
	check "$command --help shows its use and options"
	cp out long
	run 0 "$tally" help "$command" && { [ "$command" = help ] || cmp -s out long; }
	check "help $command prints the same"
	# The command accepts each option in its help; --help after it keeps the command from
	# running.
	: >wrong
	grep -E '^  (-[A-Za-z]|    --)' long | sed 's/^ *//; s/   *.*//' | while read -r shown; do
		letter=$(grep -oE '^-[A-Za-z]' <<<"$shown")
		name=$(grep -oE -- '--[a-z0-9-]+' <<<"$shown")
		value=
		[ "$(sed 's/^-[A-Za-z]\(, \)\?//; s/--[a-z0-9-]*//' <<<"$shown")" ] && value=1
		for option in ${letter:+"$letter$value"} ${name:+"$name${value:+=$value}"}; do
			timeout 20 "$tally" "$command" "$option" --help </dev/null >out 2>&1
			[ $? != 124 ] && ! grep -qF 'there is no option' out || echo "$option" >>wrong
		done
		grep -qE ' ([A-Z|]*FILE|DIR|OLD)$' <<<"$shown" || continue
		for option in ${letter:+"$letter"} ${name:+"$name"}; do
			echo "$option" >>takes_files
			timeout 20 "$tally" "$command" "$option" '' </dev/null >out 2>&1
			[ $? = 2 ] && grep -qF "option $option: the name is empty" out || echo "$option ''" >>wrong
		done
	done
	cp wrong out
	[ ! -s wrong ]
	check "$command accepts the options that its help shows"
	run 2 "$tally" "$command" --no-such-option && has '--no-such-option' && has "tally $command --help"
	check "$command refuses an unknown option and points to the help"
done
[ "$(wc -l <takes_files)" -ge 30 ]
check "no option accepts an empty file name"
for words in script report timeline pack export fold flamegraph sim "compare old" "diff old" "script --" "fold --" "sim --"; do
	run 2 "$tally" $words '' && has "a file's name is empty" || break
done
check "… and no command accepts one without an option"
run 2 "$tally" no-such-command && has "no-such-command"
check "an unknown command is wrong use"
run 2 "$tally" stta && has "did you mean 'tally stat'"
check "for a mistyped command, the nearest is suggested"
run 2 "$tally" record --callgraph fp true && has "no option --callgraph; did you mean --call-graph?" &&
	run 2 "$tally" record --frequency 99 true && has "no option --frequency; did you mean --freq?" &&
	run 2 "$tally" record -freq 99 true && has "no option -f; did you mean --freq?" &&
	run 2 "$tally" record --nothing-like-it true && has "no option --nothing-like-it" && ! has "did you mean"
check "… for a mistyped option too"
for words in "report --sort symbl symbol" "report --sort dso,cmm comm" "report --sort commands comm" "top -s simbol symbol" \
	"diff --sort srclin srcline" "script -F comm,symm sym"; do
	meant=${words##* }
	run 2 "$tally" ${words% *} && has "hint: did you mean '$meant'?" || break
done
check "… and for a mistyped key or field"
run 2 "$tally" diff --sort foo && has "no key 'foo'" && has "hint: there are comm, dso, sym, srcline" && ! has "did you mean" &&
	run 2 "$tally" script -F foo && has "no field 'foo'" && has "hint: fields are comm," && run 2 "$tally" script -F insn && has "--records"
check "… or all words are listed"
run 2 "$tally" report --sort foo && has "hint: there are comm," && sed -n 's/^hint: there are //p' out | tr -d , | tr ' ' '\n' >keys &&
	[ "$(wc -l <keys)" -gt 40 ]
while read -r key; do
	"$tally" report --sort "$key" -i no-such-file 2>&1 </dev/null | grep -q "no-such-file" || echo "$key"
done <keys >refused
check "… and each listed word is accepted" test -s keys -a ! -s refused
run 2 "$tally" mem record && has "hint: tally record -d -W" && ! has "did you mean" && run 2 "$tally" sched && has "tally timeline"
check "for perf's other commands, the message names what replaces them"
for reads in 'sched latency' 'lock contention' 'kmem' timechart trace; do
	run 2 "$tally" ${reads%% *} && has "'perf $reads -i tally.data" || break
done
check "… and those that read tally's recordings"
run 0 "$tally" --version && cp out said && for same in version -v -V 'version --build-options'; do
	# shellcheck disable=SC2086
	run 0 "$tally" $same && cmp -s out said || break
done && run 2 "$tally" --verbose && has 'there is no option --verbose before a command' && has 'hint: options follow the command'
check "perf's ways to ask for the version have it; other options follow the command"
run 2 "$tally" help no-such-command && has "no-such-command"
check "the help of an unknown command is wrong use"
run 1 sh -c '"$1" help >/dev/full' sh "$tally"
check "a full disk makes it fail"

# --- the library -------------------------------------------------------------------------------------------------
if ! command -v pkg-config >/dev/null; then
	skip "the installed library" "no pkg-config"
	echo "1..$number"
	exit
fi
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 PKG_CONFIG_SYSROOT_DIR=$scratch/root
PKG_CONFIG_LIBDIR=$(dirname "$(here pkgconfig/tally.pc)")
export PKG_CONFIG_LIBDIR
cflags=$(pkg-config --cflags tally 2>out) && libs=$(pkg-config --libs tally 2>>out)
check "pkg-config finds tally, which requires no other package"
[ "tally $(pkg-config --modversion tally)" = "$("$tally" --version)" ]
check "command and library have the same version"
library=$(here libtally.so)
export LD_LIBRARY_PATH=${library%/*}
sanitize=
[ "$SANITIZE" = none ] || sanitize=-fsanitize=$SANITIZE

for header in $(cd root && find . -path '*/include/*.h' | sed 's|.*/include/||'); do
	echo "#include <$header>" >alone.c
	cp alone.c alone.cpp
	for standard in c99 c11 gnu17; do
		run 0 $CC $cflags -std=$standard -Wall -Wextra -Werror -pedantic-errors -fsyntax-only alone.c
		check "$header compiles by itself as clean $standard"
	done
	if command -v ${CXX%% *} >/dev/null; then
		for standard in c++11 c++17; do
			run 0 $CXX $cflags -std=$standard -Wall -Wextra -Werror -pedantic-errors -fsyntax-only alone.cpp
			check "$header compiles by itself as clean $standard"
		done
	else
		skip "$header compiles by itself as clean C++" "no C++ compiler"
	fi
done

run 0 $CC $sanitize -Wall -Wextra -Werror $cflags "$(here examples/self_count.c)" -o self_count $libs
check "the installed example compiles"
./self_count 2>&1 | head -2 >out
grep -qE '=[0-9]+$|be counted' out
check "it runs with the shared library"
run 0 $CC $sanitize $cflags "$(here examples/self_count.c)" -o self_count_static "$(here libtally.a)"
check "it links with the static library and nothing else but libc"
env -u LD_LIBRARY_PATH ./self_count_static 2>&1 | head -2 >out
grep -qE '=[0-9]+$|be counted' out
check "it runs without the shared library"
cat >use.cpp <<'CPP'
#include <tally/counter.h>
int main()
{
	char error[256] = "";
	tally_counter *counter = tally_counter_open("no-such-event", error, sizeof(error));
	return counter == nullptr && error[0] != '\0' ? 0 : 1;
}
CPP
if command -v ${CXX%% *} >/dev/null; then
	run 0 $CXX $sanitize -std=c++11 -Wall -Wextra -Werror -pedantic $cflags use.cpp -o use $libs && run 0 ./use
	check "a C++ program links and runs"
else
	skip "a C++ program links and runs" "no C++ compiler"
fi

# Of tracepoint.h: what the code of its macros calls, and what publishes it.
traced() { sed -n '/--- for the code that the macros/,/^#ifdef __cplusplus/p; /^int tally_trace_publish/p' "$(here tally/tracepoint.h)"; }
declared=$({ for header in counter data group record region ring; do cat "$(here tally/$header.h)"; done; traced; } |
	sed '/^ \*\|^\/\*/d' | grep -vE '^(static inline|typedef)' | grep -oE '\<tally_[a-z0-9_]+\(' | tr -d '(' | sort -u)
nm -D --defined-only "$library" | awk '$2 ~ /[TDBRVWi]/ { sub(/@.*/, "", $3); print $3 }' | sort -u >out
[ "$declared" = "$(cat out)" ]
check "the library exports exactly what its headers declare"
readelf -d "$library" >out
grep -q 'SONAME.*libtally\.so\.[0-9]*\]' out
check "the library has a versioned name"
if [ "$SANITIZE" = none ]; then
	[ -z "$(sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' out | grep -vE '^(libc|libelf|libdw|libzstd)\.so\.[0-9]+$')" ]
	check "the library needs only libc, libelf, libdw and libzstd"
else
	skip "the library needs only libc, libelf, libdw and libzstd" "sanitizers bring libraries of their own"
fi

# --- the engine --------------------------------------------------------------------------------------------------
pkg-config --cflags --libs tally-engine >out 2>&1 && has -ltallyengine
check "pkg-config finds the engine, which requires no other package"
nm --defined-only "$(here libtallyengine.a)" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u >defined
grep -vE 'typedef|^ \*|/\*' "$(here tally/engine.h)" | grep -oE '\<tally_(engine|trace)_[a-z0-9_]+\(' | tr -d '(' | sort -u |
	comm -23 - defined >out
[ ! -s out ]
check "the engine's library defines what its header declares"
# Runs the commands in porting.md unchanged, except for the compiler, which is the build's.
cd "$(dirname "$(here examples/skeleton.c)")" || exit 1
grep '^    cc ' ../porting.md | sed "s|^    cc |$CC $sanitize |" >"$scratch/commands"
[ "$(wc -l <"$scratch/commands")" = 2 ]
check "porting.md has commands for two hosts"
sh -e "$scratch/commands" >"$scratch/out" 2>&1
status=$?
mv skeleton tracepoints "$scratch" 2>/dev/null
cd "$scratch" || exit 1
[ $status = 0 ]
check "the commands of porting.md build hosts with the installed files"
run 0 ./skeleton && has "faults 2, wakes 2"
check "the smallest host runs"
run 0 ./tracepoints && has "cents were paid"
check "the host with tracepoints runs"
printf '#include <tally/tracepoint.h>\nint main() { return tally_engine_free == nullptr; }\n' >engine.cpp
if command -v ${CXX%% *} >/dev/null; then
	run 0 $CXX $sanitize -std=c++11 $(pkg-config --cflags tally-engine) engine.cpp -o engine $(pkg-config --libs tally-engine) && run 0 ./engine
	check "a C++ program links the engine"
else
	skip "a C++ program links the engine" "no C++ compiler"
fi

# --- uninstalling ------------------------------------------------------------------------------------------------
mkdir -p tree/scripts tree/build && cp "$SOURCE/scripts/uninstall" tree/scripts
: >"root/not of tally"
find "$scratch/root" -depth ! -name 'not of tally' >tree/build/installed # folders, too
run 0 tree/scripts/uninstall && [ -z "$(find root -type f ! -name 'not of tally')" ] && [ -z "$(find root -path '*/tally')" ] && [ -e "root/not of tally" ]
check "make uninstall removes each file and tally's folders, and nothing else"
run 1 tree/scripts/uninstall && has "is not there"
check "… and says when there is nothing to remove"

echo "1..$number"
