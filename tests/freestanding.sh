#!/bin/bash
# The engine and the code below it compile without any library, for machines of every kind, and need
# nothing at link time except what compilers assume.  TAP.
# Usage: freestanding.sh SOURCE_ROOT CLANG LLD NM
set -u
root=$1 clang=$2 lld=$3 nm=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Four memory functions and arithmetic that a machine lacks; the two hooks of hosts without 64-bit
# atomics.
allowed='^(memcpy|memmove|memset|memcmp|__aeabi_[a-z0-9]+|tally_engine_atomic64_(enter|leave))$'
targets=(
	"x86_64 --target=x86_64-none-elf"
	"aarch64 --target=aarch64-none-elf"
	"riscv64 --target=riscv64-none-elf -march=rv64gc"
	"armv7 --target=armv7a-none-eabi"
	"armv6 --target=armv6-none-eabi -DTALLY_NO_ATOMIC64"
)

mapfile -t files < <(ls "$root"/src/engine/abi/*.c "$root"/src/engine/filter/*.c "$root"/src/engine/engine/*.c | grep -v '/layout\.c$')
if ! command -v "$clang" >/dev/null || ! command -v "$lld" >/dev/null || ! command -v "$nm" >/dev/null; then
	echo "1..0 # SKIP needs clang, lld and llvm-nm"
	exit 0
fi

echo "1..$((2 * ${#targets[@]}))"
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

for target in "${targets[@]}"; do
	read -r name flags <<<"$target"
	mkdir "$work/$name"
	# shellcheck disable=SC2086 # flags are words
	(cd "$work/$name" && "$clang" $flags -std=gnu17 -O1 -Wall -Wextra -Werror -Wno-missing-field-initializers \
		-ffreestanding -nostdlib -nostdlibinc -I"$root/src/engine" -I"$root/include" -c "${files[@]}") >"$work/log" 2>&1
	status=$?
	[ $status = 0 ] || sed 's/^/# /' "$work/log" | head -40
	result $status "$name: every file compiles without a library"
	missing="objects that could not be linked"
	if [ $status = 0 ] && "$lld" -r -o "$work/$name/engine" "$work/$name"/*.o >"$work/log" 2>&1; then
		missing=$("$nm" -u "$work/$name/engine" | awk '$1 == "U" { print $2 }' | grep -vE "$allowed")
	fi
	[ -z "$missing" ] || echo "# wants: "$missing
	[ -z "$missing" ]
	result $? "$name: nothing is wanted but memory functions and division"
done
exit $failed
