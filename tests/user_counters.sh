#!/bin/bash
# Each counter's number leads to its register: compiles libtally's reader for x86-64, arm64 and
# riscv64, and compares the instructions.  With qemu-riscv64, the riscv64 reader also runs.  TAP.
# Usage: user_counters.sh SOURCE_ROOT CLANG LLD OBJDUMP
set -u
root=$1 clang=$2 lld=$3 objdump=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! command -v "$clang" >/dev/null || ! command -v "$lld" >/dev/null || ! command -v "$objdump" >/dev/null; then
	echo "1..0 # SKIP needs clang, lld and llvm-objdump"
	exit 0
fi
number=0 failed=0
result() { # STATUS WHAT
	number=$((number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $number - $2"
	else
		echo "not ok $number - $2"
		failed=1
	fi
}
flags="-std=gnu17 -O2 -Wall -Wextra -Werror -ffreestanding -nostdlibinc -I$root/src -I$root/include"

# --- one function for each number ----------------------------------------------------------------------------------------
{
	echo '#include "library/user_counters.h"'
	for n in {0..31}; do
		echo "uint64_t read_$n(void) { return tally_user_counter((void *)0, $n); }"
	done
	echo 'uint64_t read_clock(void) { return tally_user_clock((void *)0); }'
} >"$work/each.c"

check() { # NAME TARGET MNEMONICS; standard input: FUNCTION MNEMONIC LAST-OPERAND for each function
	cat >"$work/wanted"
	# shellcheck disable=SC2086 # words
	"$clang" --target=$2 $flags -c -o "$work/each.o" "$work/each.c" >"$work/log" 2>&1 &&
		"$objdump" -d --no-show-raw-insn "$work/each.o" | awk -v mnemonics="^($3)\$" '
			/^[0-9a-f]+ <.*>:$/ { name = $2; gsub(/[<>:]/, "", name) }
			$2 ~ mnemonics { print name, $2, tolower($NF) }' >"$work/found" &&
		diff "$work/wanted" "$work/found" >"$work/log"
	local status=$?
	[ $status = 0 ] || sed 's/^/# /' "$work/log" | head -20
	result $status "$1: each number is read from its register"
}
check x86-64 x86_64-none-elf 'rdpmc|rdtsc' < <(
	for n in {0..31}; do echo "read_$n rdpmc rdpmc"; done
	echo "read_clock rdtsc rdtsc"
)
check arm64 aarch64-none-elf mrs < <(
	for n in {0..30}; do echo "read_$n mrs pmevcntr${n}_el0"; done
	echo "read_31 mrs pmccntr_el0"
	echo "read_clock mrs cntvct_el0"
)
check riscv64 "riscv64-none-elf -march=rv64gc" 'csrr|rdcycle|rdtime|rdinstret' < <(
	printf 'read_0 rdcycle a0\nread_1 rdtime a0\nread_2 rdinstret a0\n'
	for n in {3..31}; do echo "read_$n csrr hpmcounter$n"; done
	echo "read_clock rdtime a0"
)

# --- riscv64 runs: qemu's user mode answers with its host's ticks ---------------------------------------------------------
cat >"$work/run.c" <<'C'
#include "library/user_counters.h"

static long call(long number, long argument)
{
	register long a7 __asm__("a7") = number;
	register long a0 __asm__("a0") = argument;
	__asm__ volatile("ecall" : "+r"(a0) : "r"(a7) : "memory");
	return a0;
}

void _start(void)
{
	static struct tally_user_page page = { .pmc_width = 64, .offset = 1000, .capabilities = 6 };
	struct tally_user_page *pages[] = { &page };
	int is_good = 1;
	for (page.index = 1; page.index <= 3; page.index += 2) { /* cycle, instret */
		uint64_t last = 0, value = 0;
		for (int i = 0; i < 1000; i++, last = value)
			is_good &= tally_pages_read(pages, 1, &tally_this_cpu, &value, (void *)0) &&
				   value > 1000 && value >= last;
	}
	page.index = 2; /* time is no counter */
	is_good &= !tally_pages_read(pages, 1, &tally_this_cpu, &(uint64_t){ 0 }, (void *)0);
	is_good &= tally_user_clock((void *)0) != 0;
	call(93, !is_good); /* exit */
	__builtin_unreachable();
}
C
what="riscv64: the reader runs"
if ! command -v qemu-riscv64 >/dev/null; then
	number=$((number + 1))
	echo "ok $number - $what # SKIP qemu-riscv64 is not installed (qemu-user)"
else
	# shellcheck disable=SC2086 # words
	"$clang" --target=riscv64-linux-gnu -march=rv64gc $flags -nostdlib -static -fuse-ld=lld -o "$work/run" "$work/run.c" >"$work/log" 2>&1 &&
		qemu-riscv64 "$work/run" >>"$work/log" 2>&1
	status=$?
	[ $status = 0 ] || sed 's/^/# /' "$work/log"
	result $status "$what"
fi
echo "1..$number"
exit $failed
