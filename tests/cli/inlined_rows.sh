#!/bin/bash
# Inlined functions are functions: every view has the same self and total of each, of one function
# however many copies it has.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
running=
trap '[ -z "$running" ] || kill $running 2>/dev/null; rm -rf "$scratch"' EXIT
export PAGER=cat NO_COLOR= HOME=$scratch XDG_CACHE_HOME=$scratch/cache DEBUGINFOD_URLS= COLUMNS=200
mkdir cache
have python3 && have cc || skip_all "needs python3 and cc"

# A function that is inlined into two others and into itself, two of one name in two files, and a
# function of which one copy is inlined and another is called.
cat >copies.c <<'C'
#include <stdio.h>
#define INLINED static inline __attribute__((always_inline))
volatile long sink;
INLINED void spin(long n) { for (long i = 0; i < n; i++) sink = sink + i; }
INLINED void work(long n) { spin(n); sink = sink * 3; spin(n); }
__attribute__((noinline)) void one(void) { work(40000); }
__attribute__((noinline)) void two(void) { work(10000); spin(20000); }
static long fib(long n) { return n < 2 ? n + sink % 2 : fib(n - 1) + fib(n - 2); }
INLINED void both(long n) { for (long i = 0; i < n; i++) sink = sink ^ i; }
void other(void), (*volatile called)(long) = both;
int main(int argc, char **argv)
{
	long sum = 0;
	for (int i = 0; i < 2000 || argc > 1; i++) {
		one();
		two();
		other();
		sum += fib(16);
		both(20000);
		called(20000);
	}
	printf("%ld\n", sum + !argv);
}
C
cat >other.c <<'C'
extern volatile long sink;
static inline __attribute__((always_inline)) void spin(long n) { for (long i = 0; i < n; i++) sink = sink - i; }
__attribute__((noinline)) void other(void) { spin(30000); }
C
cc -O2 -g -o copies copies.c other.c 2>out || skip_all "cc does not build the program"
record() { timeout 60 "$TALLY" record -q -e cpu-clock -F 1999 -o "$1.data" -- "./$1" >out 2>&1; }
record copies || skip_all "tally can't record here: $(head -c 100 out | tr '\n#' '  ')"
agree() { timeout 100 "$here/compare_views.py" "$TALLY" "$@" >out 2>&1; }
check "C: every view has the same self and total of each function" agree copies.data
check "… and --no-inline, of each symbol" agree copies.data --no-inline

rows() { "$TALLY" report --stdio --percent-limit 0 -i copies.data "$@" >out 2>err; }
# share NAME: prints TOTAL and SELF of the row
share() { sed -En "s/^ *([0-9.]+)% +([0-9.]+)% +copies +$1\$/\1 \2/p" out; }
rows
check "an inlined function has a row, marked" eval 'share "spin \(copies.c\) \(inlined\)" | grep -q .'
check "… apart from one of another file" eval 'share "spin \(other.c\) \(inlined\)" | grep -q .'
check "… and the functions around it have only TOTAL" eval 'share "one" | grep -q "[1-9].* 0\.[0-9]*$" && share "work \(inlined\)" | grep -q "[1-9].* [0-9]\.[0-9]*$"'
check "a function of which only some copies are inlined is one row" eval '[ "$(grep -c " both" out)" = 1 ] && share "both \(partly inlined\)" | grep -q .'
check "no TOTAL exceeds 100 %, also where copies are inlined into each other" eval '! grep -E "^ *(1[0-9][1-9]|1[1-9][0-9]|[2-9][0-9]{2})\." out'
rows -j
check "JSON marks them" eval 'grep -A3 "\"function\": \"work\"" out | grep -q "\"inlined\": \"all\"" && grep -A3 "\"function\": \"both\"" out | grep -q "\"inlined\": \"some\""'
rows --no-inline
check "--no-inline: rows are symbols" eval '! grep -q "inlined\| copies  *spin\| copies  *work" out && share one | grep -q "[1-9].* [1-9]"'
rows --symbol 'spin*'
check "--symbol selects samples of an inlined function" eval 'share "spin.* \(inlined\)" | grep -q "[1-9]" && ! grep -q " fib" out'
rows -g callee --no-children --sort sym
check "trees of callers begin with the function that it was inlined into" eval 'grep -A4 "spin (copies.c) (inlined)" out | grep -q "work (inlined)"'
rows --no-children --sort sym,srcline
check "--sort srcline: the line is in the function of the row" eval 'grep -q "spin (copies.c) (inlined)  *copies.c:4$" out && grep -q "spin (other.c) (inlined)  *other.c:2$" out'
rows --no-inline --no-children --sort sym,srcline
check "… with --no-inline, a symbol has the lines of what was inlined into it" grep -q ' one  *copies.c:4$' out
"$TALLY" annotate --stdio -i copies.data work >out 2>err
check "annotate shows each copy of an inlined function, in the code around it" eval '[ "$(sed -n "s/^work (inlined into \(.*\))  .*/\1/p" out | sort | tr "\n" " ")" = "one two " ]'
"$TALLY" annotate --stdio -i copies.data one >out 2>err
check "… and what was inlined into a function, as its own" eval 'grep -q "^one  " out && grep -Eq "[1-9][0-9]* of them are in functions that were inlined" <(tr "\n" " " <out)'
"$TALLY" diff copies.data copies.data >out 2>err
check "diff compares them" grep -q ' spin (copies.c)' out

./copies forever &
running=$!
if timeout 60 "$TALLY" top --stdio -p $running -n 2 -d 0.5 -F 999 --percent-limit 0 >out 2>err; then
	check "top has rows of inlined functions" eval 'grep -q " spin (copies.c) (inlined)$" out && ! grep -q " one$" out'
	timeout 60 "$TALLY" top --stdio -p $running -n 1 -d 0.5 -F 999 --percent-limit 0 --no-inline >out 2>err
	check "… --no-inline: of symbols" eval 'grep -q " one$" out && ! grep -q inlined out'
else
	skip "top has rows of inlined functions" "top can't sample here"
fi
kill $running

cat >templates.cc <<'C'
#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <vector>
namespace {
template <typename T> struct holder {
	T value;
	T scaled(T by) const { T v = value; for (int i = 0; i < 50; i++) v = v * by + 1; return v; }
};
int helper(int x) { for (int i = 0; i < 40; i++) x = x * 1103515245u + 12345u; return x; }
double helper(double x) { for (int i = 0; i < 40; i++) x = x * 1.0001 + 3; return x; }
}
__attribute__((noinline)) double use_helper(double x) { return helper(x) + helper((int)x); }
int main()
{
	double sum = 0;
	for (int r = 0; r < 60; r++) {
		std::vector<int> v(10000);
		std::iota(v.begin(), v.end(), 0);
		for (auto &x : v) x = (x * 7919 + r) % 10007;
		std::sort(v.begin(), v.end(), [](int a, int b) { return (a ^ 5) < (b ^ 5); });
		std::map<int, int> m;
		for (int x : v) m[x % 977] += x;
		holder<double> d{1.5};
		holder<long> l{3};
		for (int i = 0; i < 2000; i++) sum += d.scaled(i) + l.scaled(i % 3) + use_helper(i) + helper(i * 2);
		sum += m.size() + v[5];
	}
	printf("%g\n", sum);
}
C
if have c++ && c++ -O2 -g -o templates templates.cc 2>out && record templates; then
	check "C++: every view has the same self and total of each function" agree templates.data
else
	skip "C++: every view has the same self and total of each function" "no C++ compiler"
fi
cat >rust.rs <<'R'
use std::collections::HashMap;
#[inline(always)]
fn mix(x: u64) -> u64 { let mut v = x; for _ in 0..20 { v = v.rotate_left(5) ^ v.wrapping_mul(0x9e3779b97f4a7c15); } v }
#[inline(never)]
fn table(n: u64) -> u64 { let mut m = HashMap::new(); for i in 0..n { *m.entry(mix(i) % 1000).or_insert(0u64) += i; } m.values().sum() }
fn main() {
    let mut s = 0u64;
    for i in 0..40 {
        let v: Vec<u64> = (0..20000u64).map(mix).filter(|x| x % 3 == 0).collect();
        s = s.wrapping_add(table(20000 + i)).wrapping_add(v.iter().sum::<u64>() >> 20);
    }
    println!("{}", s);
}
R
if have rustc && rustc -O -g -o rust rust.rs >out 2>&1 && record rust; then
	check "Rust: the same" agree rust.data
else
	skip "Rust: the same" "no rustc"
fi
cat >go.go <<'G'
package main

import (
	"fmt"
	"sort"
)

func mix(x int) int { for i := 0; i < 8; i++ { x = x*31 + i }; return x }
func twice(x int) int { return mix(mix(x)) }
func main() {
	s := 0
	for r := 0; r < 40; r++ {
		v := make([]int, 20000)
		for i := range v { v[i] = twice(i) & 0xffff }
		sort.Slice(v, func(i, j int) bool { return v[i] < v[j] })
		s += v[3]
	}
	fmt.Println(s)
}
G
if have_go && GOCACHE=$scratch/gocache GOFLAGS=-mod=mod timeout 100 go build -o go.program go.go >out 2>&1 && record go.program; then
	check "Go: the same" agree go.program.data
else
	skip "Go: the same" "no go"
fi
done_testing
