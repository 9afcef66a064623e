#!/bin/bash
# SPEC G6: code without symbols is told apart by function, and no symbol names another function's
# code.  TAP; $TALLY is the binary, $SOURCE the source's folder.
set -u
. "$(dirname "$0")/tap.sh"
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export PAGER=cat NO_COLOR= HOME=$scratch XDG_CACHE_HOME=$scratch/cache DEBUGINFOD_URLS=
mkdir cache

# A program whose functions each take a known share, and pieces of assembly for it.
cat >main.c <<'END_C'
#include <time.h>
#define NI __attribute__((noinline))
volatile unsigned long sink;
void assembled(void) __attribute__((weak));
#ifdef TWO
static NI void hidden_hot(long n) { for (long i = 0; i < n; i++) sink += i * i; __asm__ volatile(""); }
static NI void hidden_two(long n) { for (long i = 0; i < n; i++) sink ^= i * i; __asm__ volatile(""); }
NI void work(void) { hidden_hot(60000); hidden_two(30000); __asm__ volatile(""); }
#else
NI void work(void) { assembled(); __asm__ volatile(""); }
#endif
#ifndef LIBRARY
int main(void)
{
	clock_t end = clock() + CLOCKS_PER_SEC / 4;
	while (clock() < end) work();
	return 0;
}
#endif
END_C
cat >label.s <<'END_S'
	.text
	.globl label_without_size
	.type label_without_size,@function
label_without_size:
	xor %eax,%eax
	ret
	.section .note.GNU-stack,"",@progbits
END_S
if ! gcc -O2 -DTWO -o try main.c label.s 2>out || [ "$(uname -m)" != x86_64 ] ||
	! timeout 20 "$TALLY" record -q -o try.data -- ./try 2>/dev/null >out; then
	echo "1..0 # SKIP needs gcc, x86-64, and a kernel that may be asked"
	exit 0
fi

# hot PROGRAM: the functions of PROGRAM's report with at least 10 % of the samples in themselves, one a line
hot() {
	timeout 60 "$TALLY" record -q -e cpu-clock -o hot.data -- "./$1" >/dev/null 2>&1 &&
		timeout 60 "$TALLY" report --stdio -i hot.data 2>err | awk '$2 ~ /%$/ && $2 + 0 >= 10 { print $4 }' >out
}
# are PROGRAM NAME…: these are the functions of its hot code, hottest first
are() { hot "$1" && diff <(printf '%s\n' "${@:2}") out; }
# start PROGRAM FUNCTION: the address of a function, which gcc may call "f.constprop.0"
start() { nm "$1" | awk -v name="$2" '$3 == name || index($3, name ".") == 1 { sub(/^0+/, "", $1); print "0x" $1 }'; }

# ---- symbols without a size ----------------------------------------------------------------------------------------

gcc -O2 -DTWO -rdynamic -o whole label.s main.c && strip -o stripped whole
check "code behind a label without a size has its own functions, by their unwind rules" \
	are stripped "[stripped+$(start whole hidden_hot)]" "[stripped+$(start whole hidden_two)]"
sed '/\.type/d' label.s >untyped.s
gcc -O2 -DTWO -rdynamic -o whole untyped.s main.c && strip -o stripped whole
check "… and a label without a type" \
	are stripped "[stripped+$(start whole hidden_hot)]" "[stripped+$(start whole hidden_two)]"
gcc -O2 -DTWO -DLIBRARY -fPIC -shared -o libwhole.so label.s main.c && strip -o libstripped.so libwhole.so
echo 'void work(void); int main(void) { for (int i = 0; i < 1500; i++) work(); }' >caller.c
gcc -o caller caller.c -L. -lstripped -Wl,-rpath,"$scratch"
check "… also in a library" \
	are caller "[libstripped.so+$(start libwhole.so hidden_hot)]" "[libstripped.so+$(start libwhole.so hidden_two)]"

# loop NAME: a loop, without rules, size and type
loop() { printf '\t.balign 32\n%s:\n\tpush %%rbx\n\tmov $%s,%%ecx\n1:\timul $77,%%rax,%%rax\n\tdec %%ecx\n\tjnz 1b\n\tpop %%rbx\n\tret\n' "$1" "$2"; }
{
	printf '\t.text\n\t.globl small, assembled\n\t.hidden assembled\nsmall:\n\tmov %%rdi,%%rax\n\tret\n'
	loop first 60000; loop second 30000
	printf '\t.balign 16\nassembled:\n\tlea table(%%rip),%%rax\n\tpush %%rax\n\tcall *(%%rax)\n\tpop %%rax\n\tcall *8(%%rax)\n\tret\n'
	printf '\t.section .data.rel.ro,"aw"\ntable:\n\t.quad first, second\n\t.section .note.GNU-stack,"",@progbits\n'
} >table.s
gcc -O2 -DLIBRARY -fPIC -shared -o libwhole.so table.s main.c && strip -o libstripped.so libwhole.so
check "without rules, too: functions that only a table leads to" \
	are caller "[libstripped.so+$(start libwhole.so first)]" "[libstripped.so+$(start libwhole.so second)]"
gcc -O2 -o whole table.s main.c
check "symbols without sizes have the code up to the next function" are whole first second

# A local label inside a function, as NASM makes it of ".loop".
{
	printf '\t.text\n\t.globl assembled\nassembled:\n\tpush %%rbx\n\tmov $50000,%%ecx\n'
	printf 'assembled.loop:\n\timul $77,%%rax,%%rax\n\tdec %%ecx\n\tjnz assembled.loop\n\tpop %%rbx\n\tret\n'
	printf '\t.section .note.GNU-stack,"",@progbits\n'
} >loop.s
gcc -O2 -o whole loop.s main.c
check "a local label is not its function's name" are whole assembled
fold_is() { timeout 60 "$TALLY" fold -i hot.data 2>err | sed 's/ [0-9]*$//' | grep -q "$1"; }
check "… and its stack is whole" fold_is '^whole;_start;__libc_start_main;.*;main;work;assembled$'
if have nasm; then
	printf 'section .text\nglobal assembled\nglobal other\nassembled:\n push rbx\n mov ecx, 50000\n.loop:\n imul rax, rax, 77\n dec ecx\n jnz .loop\n pop rbx\n ret\nother:\n ret\nsection .note.GNU-stack noalloc noexec nowrite progbits\n' >n.asm
	nasm -f elf64 -o n.o n.asm && gcc -O2 -o whole n.o main.c
	check "… as NASM makes it" are whole assembled
else
	skip "… as NASM makes it" "needs nasm"
fi

# ---- no symbols at all ---------------------------------------------------------------------------------------------

gcc -O2 -DTWO -fno-asynchronous-unwind-tables -o whole main.c && strip -o stripped whole
check "a stripped program without rules has functions where the code begins them" \
	are stripped "[stripped+$(start whole hidden_hot)]" "[stripped+$(start whole hidden_two)]"
gcc -O2 -DTWO -rdynamic -o whole main.c
strip -o stripped whole
python3 - <<'END_PY'
data = bytearray(open("stripped", "rb").read())
data[40:48], data[60:64] = bytes(8), bytes(4) # e_shoff, e_shnum, e_shstrndx
open("stripped", "wb").write(data)
END_PY
hot stripped
check "exported functions have names without section headers" fold_is ';main;work;'

# ---- debug information without its companion file --------------------------------------------------------------------

cat >inlined.h <<'END_C'
static inline __attribute__((always_inline)) void inner(long n) { for (long i = 0; i < n; i++) sink += i * i; }
static inline __attribute__((always_inline)) void middle(long n) { inner(n); inner(n / 2); }
END_C
cat >one.c <<'END_C'
#include <time.h>
extern volatile unsigned long sink;
#include "inlined.h"
void other(long);
__attribute__((noinline)) void holder(long n) { middle(n); other(n); __asm__ volatile(""); }
int main(void) { clock_t end = clock() + CLOCKS_PER_SEC / 5; while (clock() < end) holder(50000); }
END_C
cat >two.c <<'END_C'
volatile unsigned long sink;
#include "inlined.h"
void other(long n) { middle(n / 4); __asm__ volatile(""); }
END_C
# no_inlined WHAT FILE HINT: (a part of the file's name) checks that the stacks and the warning of `hot.data` are right without FILE
no_inlined() {
	check "$1: its functions are left out" eval "hot $1; fold_is ';main;holder\$' && ! fold_is '\[$1'"
	warns() { timeout 60 "$TALLY" report --stdio -i hot.data 2>err >out; grep -q "inlined functions of $1 are not shown: .*$2 is missing; $3" err; }
	check "… and a line says why" warns "$@"
}
mkdir -p packed/.dwz/x
if have dwz && gcc -O2 -g -o one one.c two.c && cp one again && dwz -m packed/.dwz/x/tool.debug one again 2>err; then
	check "names of inlined functions are in dwz's common file" eval "hot one; fold_is ';holder;middle;inner\$'"
	mv packed away
	rm -rf cache/*
	no_inlined one tool.debug "install tool-dbgsym"
else
	for what in "names of inlined functions are in dwz's common file" "one: its functions are left out" "… and a line says why"; do
		skip "$what" "needs dwz"
	done
fi
if gcc -O2 -g -gsplit-dwarf -c one.c two.c && gcc -o split one.o two.o && rm -f ./*.dwo; then
	no_inlined split .dwo "keep it where it was compiled"
fi

# ---- Go ------------------------------------------------------------------------------------------------------------

cat >spin.go <<'END_GO'
package main

import "fmt"

//go:noinline
func half(n int) (s int) { for i := 0; i < n; i++ { s += i * i ^ s }; return }

//go:noinline
func stage(n int) int { return half(2 * n) + half(n) }

func main() {
	s := 0
	for i := 0; i < 6000; i++ { s += stage(20000) }
	fmt.Println(s)
}
END_GO
export GO111MODULE=off GOFLAGS= GOCACHE=${GOCACHE:-$(eval echo ~"$(id -un)")/.cache/go-build}
if have_go && go build -ldflags '-s -w' -o gone spin.go 2>err; then
	check "a stripped Go program has Go's own names" are gone main.half
	check "… with whole stacks" fold_is '^gone;runtime.goexit;runtime.main;main.main;main.stage;main.half$'
	silent() { timeout 60 "$TALLY" report --stdio -i hot.data 2>err >out && ! grep -E 'names|incomplete' err; }
	check "… and no warning" silent
	lines() { timeout 60 "$TALLY" annotate -i hot.data main.half 2>&1 | grep -q 'spin.go:6'; }
	check "… and lines" lines
else
	for what in "a stripped Go program has Go's own names" "… with whole stacks" "… and no warning" "… and lines"; do
		skip "$what" "needs go"
	done
fi
done_testing
