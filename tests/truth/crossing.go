// Go and C call each other: C code that leaves rbp alone, C code that uses it, Go called back from
// C, and C called by that Go.
package main

/*
#cgo CFLAGS: -O2
#include <stdint.h>

static volatile uint64_t sink;
extern void goBack(int), goNested(int);

__attribute__((noipa)) static void c_plain(int n)
{
	for (int i = 0; i < n; i++)
		sink += i;
}

// Functions that use rbp for their own data, as large C functions do.
#define USES_RBP(name) \
	void name(int n); \
	__asm__(".pushsection .text\n" \
		".type " #name ",@function\n" \
		#name ": .cfi_startproc\n" \
		"push %rbp; .cfi_adjust_cfa_offset 8; .cfi_rel_offset %rbp,0\n" \
		"mov %edi,%ebp\n" \
		"1: imul $77,%rax,%rax; imul $77,%rax,%rax; dec %ebp; jnz 1b\n" \
		"pop %rbp; .cfi_adjust_cfa_offset -8; .cfi_restore %rbp\n" \
		"ret; .cfi_endproc\n" \
		".size " #name ",.-" #name "\n" \
		".popsection\n");
USES_RBP(c_busy)
USES_RBP(c_inner)

__attribute__((noipa)) static int c_calls_back(int n)
{
	goBack(n);
	return sink & 1;
}

__attribute__((noipa)) static int c_calls_nested(int n)
{
	goNested(n);
	return sink & 1;
}
*/
import "C"

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"
)

const threadCPUTime = 3 // CLOCK_THREAD_CPUTIME_ID

var sink uint64

func now() int64 {
	var used syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadCPUTime, uintptr(unsafe.Pointer(&used)), 0)
	return used.Sec*1000000000 + used.Nsec
}

//go:noinline
func leaf(n int) {
	value := sink
	for i := 0; i < n; i++ {
		value = value*636413623 + uint64(i)
	}
	sink = value
}

//export goBack
func goBack(n C.int) { leaf(int(n)) }

//go:noinline
func inner(n C.int) { C.c_inner(n) }

//export goNested
func goNested(n C.int) { inner(n) }

//go:noinline
func plain() { C.c_plain(100000) }

// A call of C that uses rbp lasts several of the recorder's looks at the task's memory, of which one
// before a sample and one after it must see the same call.  On a busy machine they are far apart.
const LONG = 40000000

//go:noinline
func busy() { C.c_busy(LONG) }

//go:noinline
func back() { C.c_calls_back(100000) }

//go:noinline
func nested() { C.c_calls_nested(LONG) }

func main() {
	runtime.LockOSThread()
	parts := []struct {
		name         string
		milliseconds int64
		call         func()
		used         int64
	}{{"plain", 40, plain, 0}, {"busy", 70, busy, 0}, {"back", 60, back, 0}, {"nested", 50, nested, 0}}
	for round := 0; round < 5; round++ {
		for i := range parts {
			part := &parts[i]
			start := now()
			at := start
			for at-start < part.milliseconds*1000000 {
				part.call()
				at = now()
			}
			part.used += at - start
		}
	}
	// The runtime has threads of its own: shares are parts of the process's whole time.
	var used syscall.Rusage
	syscall.Getrusage(0, &used)
	seconds, microseconds := used.Utime.Sec+used.Stime.Sec, used.Utime.Usec+used.Stime.Usec
	total := seconds*1000000000 + microseconds*1000
	for _, part := range parts {
		fmt.Printf("%s %.2f\n", part.name, 100*float64(part.used)/float64(total))
	}
}
