#!/bin/bash
# Functions with the same name are told apart by their symbol, and names are as short as that
# allows: overloads, destructors' bodies, local functions of several files, in every view.
# Recordings contain the distinction.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
running=
trap '[ -z "$running" ] || kill $running 2>/dev/null; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export PAGER=cat NO_COLOR= HOME=$scratch XDG_CACHE_HOME=$scratch/cache DEBUGINFOD_URLS= COLUMNS=200
mkdir cache
have g++ || skip_all "there is no g++"

cat >main.cpp <<'END'
#include <cstdlib>
#include <cstring>
#include <utility>
#define APART __attribute__((noinline, noipa))
volatile double sink;
#define spin(n) for (long i = 0; i < (n); i++) sink = sink + 1
APART void calc(int) { spin(400000); }
APART void calc(double) { spin(800000); }
APART void only(int) { spin(200000); }
namespace engine { template <typename T> struct Sorter { APART void bubble() { spin(300000); } }; }
struct Base { APART virtual ~Base(); };
Base::~Base() { spin(200000); }
struct Child : Base { void operator delete(void *at) { spin(200000); ::operator delete(at); } APART ~Child() override; };
Child::~Child() { spin(200000); }
extern "C" void first(void), second(void);
int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "all";
	bool all = !strcmp(what, "all");
	for (int i = 0, rounds = argc > 2 ? atoi(argv[2]) : 120; i < rounds; i++) {
		if (all || !strcmp(what, "int")) calc(1);
		if (all || !strcmp(what, "double")) calc(1.0);
		if (!all) continue;
		only(1);
		engine::Sorter<std::pair<int, long>>().bubble();
		engine::Sorter<std::pair<char, long>>().bubble();
		Base *object = new Child;
		delete object;
		first();
		second();
	}
}
END
cat >local.c <<'END'
static volatile double sink;
static __attribute__((noinline, noipa)) void helper(void) { for (long i = 0; i < TIMES; i++) sink = sink + 1; }
void ENTRY(void) { helper(); }
END
mkdir other
cp local.c one.c && cp local.c two.c && cp local.c other/two.c
build() {
	g++ -O1 -g -c main.cpp && gcc -O1 -DENTRY=first -DTIMES=200000 -c one.c && gcc -O1 -DENTRY=second -DTIMES=500000 -c two.c &&
		g++ -o program main.o one.o two.o
}
build 2>out || skip_all "g++ doesn't build the program"
timeout 60 "$TALLY" record -e cpu-clock -F 2000 -o all.data -- ./program >out 2>&1 ||
	skip_all "tally can't record here: $(head -c 100 out | tr '\n#' '  ')"

# FILE [option…]: prints names with their SELF, "NAME|SELF"
rows() { timeout 60 "$TALLY" report --stdio --percent-limit 0 "$@" 2>err | sed -En 's/^ *[0-9.]+% +([0-9.]+)% +(\[?[a-z][^ ]*) +(.*)$/\3|\1/p' >out; }
has() { grep -q "^$1|" out; }

rows -i all.data
check "overloads have two rows" eval 'has "calc(int)" && has "calc(double)" && ! has calc'
check "… with the right share of each" eval '[ "$(grep -c "^calc(.*|[1-9]" out)" = 2 ]'
check "a function with a unique name is shown without parameters" eval 'has only && has main'
check "instances of a template differ by their arguments" eval 'has "engine::Sorter<std::pair<int, long> >::bubble" &&
	has "engine::Sorter<std::pair<char, long> >::bubble"'
check "the two bodies of a destructor are distinguished" eval 'has "Child::~Child \[deleting\]" && has "Child::~Child \[\(complete\|base\)\]"'
check "local functions are distinguished by their file" eval 'has "helper (one.c)" && has "helper (two.c)" && ! has helper'

rows -i all.data --full-names
check "--full-names shows all parameters" eval 'has "only(int)" && has "main" && has "engine::Sorter<std::pair<int, long> >::bubble()"'

rows -i all.data --symbol 'calc(double)'
check "--symbol finds one overload" eval 'grep -q "^calc|[1-9]" out && ! has "calc(int)" || has "calc(double)" && ! has "calc(int)"'
rows -i all.data --symbol 'calc'
check "… or all that have this name" eval 'has "calc(double)" && has "calc(int)"'
check "… or one with a comma in its parameters" eval '[ "$(timeout 60 "$TALLY" report --stdio -i all.data \
	--symbol "nothing(int, int),only(int)" 2>&1 | grep -c " only$")" = 1 ]'

annotated() { timeout 60 "$TALLY" annotate --stdio -i all.data "$@" 2>err | sed -En 's|^(.*)  /.*/program$|\1|p' >out; }
annotated 'calc(double)'
check "annotate finds one overload" eval '[ "$(cat out)" = "calc(double)" ]'
annotated 'calc( double )'
check "… with any blanks" eval '[ "$(cat out)" = "calc(double)" ]'
annotated _Z4calcd
check "… or by its mangled name" eval '[ "$(cat out)" = "calc(double)" ]'
annotated calc
check "… or both by their common name" eval '[ "$(sort out | tr "\n" " ")" = "calc(double) calc(int) " ]'
annotated 'helper (two.c)'
check "… or one of the local functions" eval '[ "$(cat out)" = "helper (two.c)" ]'

timeout 60 "$TALLY" report --json -i all.data --percent-limit 0 >out 2>err
check "JSON distinguishes them, also by symbol" eval 'grep -q "\"function\": \"calc(int)\"" out && grep -q "\"symbol\": \"_Z4calcd\"" out'
timeout 60 "$TALLY" report --stdio -G -i all.data --percent-limit 0 >out 2>err
check "call trees distinguish them" eval 'grep -Eq "─ [0-9.]+% calc\(int\)" out && grep -Eq "─ [0-9.]+% calc\(double\)" out'
timeout 60 "$TALLY" fold -i all.data >out 2>err
check "folded stacks distinguish them" eval 'grep -q "main;calc(int) " out && grep -q "main;calc(double) " out && grep -q "main;only " out'
check "… and local functions by their file" eval 'grep -q "first;helper (one.c) " out && grep -q "second;helper (two.c) " out'
timeout 60 "$TALLY" script -i all.data >script 2>err
check "script prints names as perf does" eval 'grep -q " calc+0x" script && ! grep -q "calc(int)" script'
timeout 60 "$TALLY" flamegraph -i all.data -o graph.svg >out 2>err
check "flame graphs distinguish them" eval 'grep -q "calc(int)" graph.svg && grep -q "calc(double)" graph.svg && grep -q "helper (one.c)" graph.svg'
timeout 60 "$TALLY" export -i all.data --format speedscope -o out >err 2>&1
check "exports distinguish them" eval 'grep -q "calc(int)" out && grep -q "calc(double)" out'

# Text with parameters, which stackcollapse-perf.pl removes: they stay if they tell functions apart.
cat >text <<'END'
p 1 1.0: 1 cpu-clock:
	1 calc(int)+0x1 (/x/p)
	2 main+0x1 (/x/p)

p 1 1.1: 1 cpu-clock:
	3 calc(double)+0x1 (/x/p)
	2 main+0x1 (/x/p)

p 1 1.2: 1 cpu-clock:
	4 only(int)+0x1 (/x/p)
	2 main+0x1 (/x/p)

END
timeout 60 "$TALLY" fold -i text >out 2>err
check "in perf script text, overloads stay separate" eval '[ "$(cat out)" = "p;main;calc(double) 1
p;main;calc(int) 1
p;main;only 1" ]'

# Text of a perf without demanglers.
cat >text <<'END'
p 1 1.0: 1 cpu-clock:
	1 _ZN4core3fmt5write17h0123456789abcdefE+0x1 (/x/p)
	2 _ZN4main4main17h0123456789abcdefE.llvm.77+0x1 (/x/p)

p 1 1.1: 1 cpu-clock:
	3 _ZN4core3fmt5write17hfedcba9876543210E+0x1 (/x/p)
	2 rest::of::it::h0123456789abcdef+0x1 (/x/p)

p 1 1.2: 1 cpu-clock:
	4 _RNvC6_123foo3bar+0x1 (/x/p)
	5 _Z4calci+0x1 (/x/p)

END
timeout 60 "$TALLY" fold -i text >out 2>err
check "mangled names in text become readable, both kinds of Rust's too" eval '[ "$(cat out)" = "p;calc;123foo::bar 1
p;main::main;core::fmt::write::h0123456789abcdef 1
p;rest::of::it;core::fmt::write::hfedcba9876543210 1" ]'

# Recordings contain the distinction.
rows -i all.data && mv out before
cp all.data moved.data && mv program gone
rows -i moved.data
check "without the program, the names in the recording are the same" cmp -s before out
mv gone program
"$TALLY" record --no-pack -e cpu-clock -F 2000 -o bare.data -- ./program >out 2>&1
rows -i bare.data
check "a recording without names takes them from the program" eval 'has "helper (one.c)" && has "calc(int)"'
timeout 60 "$TALLY" pack bare.data >out 2>&1
mv program gone
rows -i bare.data
check "… and keeps them when it is packed" eval 'has "helper (one.c)" && has "calc(int)"'
mv gone program

# Two files with the same name, and functions without a file.
gcc -O1 -DENTRY=first -DTIMES=200000 -c -o one.o two.c && g++ -o alike main.o one.o two.o &&
	timeout 60 "$TALLY" record -e cpu-clock -F 2000 -o alike.data -- ./alike >out 2>&1
rows -i alike.data
check "functions that no file distinguishes show their address" eval '[ "$(grep -Ec "^helper \(0x[0-9a-f]+\)\|" out)" = 2 ]'

# Static functions that are inlined: of several files, folders, of a header, and of a file that has one which is not inlined.
cat >inlined.c <<'END'
static volatile double sink;
static inline __attribute__((always_inline)) void step(void) { for (long i = 0; i < TIMES; i++) sink = sink + 1; }
#ifdef OUTSIDE
static __attribute__((noinline, noipa)) void walk(void) { for (long i = 0; i < TIMES; i++) sink = sink + 1; }
#else
static inline __attribute__((always_inline)) void walk(void) { for (long i = 0; i < TIMES; i++) sink = sink + 1; }
#endif
#include "shared.h"
__attribute__((noinline, noipa)) void ENTRY(void) { step(); walk(); shared(); }
END
cat >shared.h <<'END'
static inline __attribute__((always_inline)) void shared(void) { for (long i = 0; i < TIMES; i++) sink = sink + 1; }
END
cat >inlining.c <<'END'
void first(void), second(void), third(void);
int main(void) { for (int i = 0; i < 150; i++) { first(); second(); third(); } }
END
cp inlined.c a.c && cp inlined.c b.c && cp inlined.c other/a.c
gcc -O1 -g -DENTRY=first -DTIMES=200000 -c a.c -o a.o && gcc -O1 -g -DENTRY=second -DTIMES=100000 -DOUTSIDE -c b.c -o b.o &&
	(cd other && gcc -O1 -g -I../other/.. -DENTRY=third -DTIMES=100000 -c a.c -o a.o) &&
	gcc -O1 -g -o inlining inlining.c a.o b.o other/a.o &&
	timeout 60 "$TALLY" record -e cpu-clock -F 2000 -o inlining.data -- ./inlining >out 2>&1
stacks() {
	timeout 60 "$TALLY" fold -i inlining.data >out 2>err
	here=$(basename "$scratch")
	grep -q "first;step ($here/a.c) " out && grep -q "second;step (b.c) " out &&
		grep -q "third;step (other/a.c) " out && ! grep -q ";step [0-9]" out
}
check "inlined static functions are distinguished by file, and by folder if needed" stacks
check "… and a function that is not inlined from inlined ones" eval 'grep -q "second;walk (b.c) " out && grep -q "first;walk (.*/a.c) " out &&
	grep -q "third;walk (other/a.c) " out && ! grep -q ";walk [0-9]" out'
check "… but not an inline function of a header" eval 'grep -q "first;shared " out && grep -q "second;shared " out && grep -q "third;shared " out'
mv out before
mv inlining gone && stacks
check "… the recording has the same names" cmp out before
mv gone inlining && rm -rf cache && mkdir cache
"$TALLY" record --no-pack -e cpu-clock -F 2000 -o bare.data -- ./inlining >out 2>&1
for round in fresh cached; do
	timeout 60 "$TALLY" fold -i bare.data >out 2>err
	check "… and so has the program, $round" eval 'grep -q "third;step (other/a.c) " out && grep -q "first;step (.*/a.c) " out && grep -q "third;shared " out'
done
timeout 60 "$TALLY" report --stdio -g -i inlining.data --percent-limit 0 >out 2>err
check "a report's call trees distinguish them" eval 'grep -q "step (other/a.c)" out && grep -q "step (b.c)" out && ! grep -q " step$" out'
timeout 60 "$TALLY" flamegraph -i inlining.data -o graph.svg >out 2>err
check "flame graphs distinguish them too" eval 'grep -q "step (other/a.c)" graph.svg && grep -q "step (b.c)" graph.svg'
for format in speedscope firefox chrome pprof; do
	timeout 60 "$TALLY" export -i inlining.data --format $format -o out >err 2>&1
	check "an export to $format distinguishes them too" eval 'grep -qa "step (other/a.c)" out && grep -qa "step (b.c)" out'
done
timeout 60 "$TALLY" script -i inlining.data >out 2>err
check "script has names as perf prints them" eval 'grep -q " step+0x.*(inlined)" out && ! grep -q "step (" out'

# A comparison: each side has one of the overloads, and calls it calc.
for what in int double; do
	timeout 60 "$TALLY" record -e cpu-clock -F 2000 -o $what.data -- ./program $what >out 2>&1
done
rows -i int.data
check "an overload is shown without parameters if it is the only one" eval 'has calc'
timeout 60 "$TALLY" diff int.data double.data >out 2>err
check "a comparison does not confuse two overloads" eval 'grep -Eq "calc\(int\)" out && grep -Eq "calc\(double\)" out'
timeout 60 "$TALLY" diff int.data all.data >out 2>err
check "… and matches the overload that both sides have, though one shows it without parameters" eval '[ "$(grep -c "calc(int)" out)" = 1 ] &&
	! grep -q "calc(int).*\(new\|gone\|was\)" out'

fails() { timeout 60 "$TALLY" diff int.data all.data --fail-if "$1" >out 2>err; [ $? = 1 ]; }
check "a function in a condition may be given without the parameters that are shown" fails 'calc > +10'
check "… or with them" fails 'calc(double) > +10'
check "… also if they are not shown" eval 'timeout 60 "$TALLY" diff int.data int.data --fail-if "calc(int) > +1" >out 2>err'

# Two programs, without a column that tells them apart.
cp program other/second
timeout 60 "$TALLY" record -e cpu-clock -F 500 -o two.data -- sh -c './program int; other/second double' >out 2>&1
timeout 60 "$TALLY" report --stdio --sort sym --percent-limit 0 -i two.data >out 2>err
check "functions of two objects stay distinct if only functions are shown" \
	eval 'grep -q " main (program)$" out && grep -q " main (second)$" out && ! grep -q " main$" out'
check "… and a function that only one object has is shown by its name only" grep -q ' __libc_start_main$' out

# … also if two of three objects have the same name in different folders.
mkdir q third && cp program q/second && cp program third/program
timeout 60 "$TALLY" record -e cpu-clock -F 500 -o three.data -- sh -c './program int; q/second double; third/program int' >out 2>&1
timeout 60 "$TALLY" report --stdio --sort sym --percent-limit 0 -i three.data >out 2>err
check "… by whole paths if the objects' names are the same" \
	eval '[ "$(grep -c " main (/.*/program)$" out)" = 2 ] && grep -q " main (/.*/q/second)$" out'

# A program with several names is shown by the name under which it was started.
mkdir bin
cp program bin/check-rdb
ln -s check-rdb bin/server
ln bin/check-rdb bin/bench
for name in server bench check-rdb; do
	timeout 60 "$TALLY" record -e cpu-clock -F 500 -o $name.data -- "bin/$name" int >out 2>&1
	timeout 60 "$TALLY" report --stdio -i $name.data --sort dso >objects 2>err
	check "an object has the name by which it was started: $name" grep -Eq "% +$name$" objects
done
timeout 60 "$TALLY" report --stdio -i server.data --dso check-rdb >out 2>err
check "… --dso also accepts its file's name" grep -q "calc" out
timeout 60 "$TALLY" script -i server.data >out 2>err
check "… script shows the file's name, as perf does" eval 'grep -q "bin/check-rdb)" out && ! grep -q "bin/server)" out'
rm bin/server
timeout 60 "$TALLY" report --stdio -i server.data --sort dso >out 2>err
check "… the recording has the same names" grep -Eq "% +server$" out
ln -s check-rdb bin/server
timeout 60 "$TALLY" record -e cpu-clock -F 500 -o both.data -- sh -c 'bin/server int; bin/check-rdb int' >out 2>&1
timeout 60 "$TALLY" report --stdio -i both.data --sort dso >out 2>err
check "a program started by two names has its file's name" eval 'grep -Eq "% +check-rdb$" out && ! grep -Eq "% +server$" out'

# The kernel cuts names at 15 letters.
ln -s check-rdb bin/server-of-long-names
ln -s check-rdb bin/exactly-fifteen
for name in server-of-long-names exactly-fifteen; do
	timeout 60 "$TALLY" record -e cpu-clock -F 500 -o long.data -- "bin/$name" int >out 2>&1
	timeout 60 "$TALLY" report --stdio -i long.data --sort dso >out 2>err
	check "a long name by which an object was started: $name" grep -Eq "% +$name$" out
done
mv bin/server-of-long-names gone-link
timeout 60 "$TALLY" record -e cpu-clock -F 500 -o long.data -- bin/exactly-fifteen int >out 2>&1
mv bin/exactly-fifteen elsewhere-link
timeout 60 "$TALLY" report --stdio -i long.data --sort dso >out 2>err
check "… the recording has the same names" grep -Eq "% +exactly-fifteen$" out
ln -s check-rdb bin/server-of-long-names
ln -s check-rdb bin/server-of-long-fame
timeout 60 "$TALLY" record -e cpu-clock -F 500 -o long.data -- bin/server-of-long-names int >out 2>&1
timeout 60 "$TALLY" report --stdio -i long.data --sort dso >out 2>err
check "… but the file's name if several links begin like this" grep -Eq "% +check-rdb$" out

./program all 100000 & running=$!
timeout 20 "$TALLY" top --stdio -n 1 -d 1 -p $running >out 2>err
check "top distinguishes overloads" eval 'grep -q "calc(int)" out && grep -q "calc(double)" out'
./program int 100000 & running="$running $!"
other/second int 100000 & running="$running $!"
timeout 20 "$TALLY" top --stdio -n 1 -d 1 -s sym -p "${running// /,}" >out 2>err
check "top distinguishes functions of two objects too, if only functions are shown" \
	eval 'grep -q " calc(int) (program)$" out && grep -q " calc(int) (second)$" out'
kill $running

done_testing
