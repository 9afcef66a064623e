// Go: the main goroutine, another one, the runtime's own assembly (copying memory) and its garbage
// collector.
package main

import (
	"fmt"
	"runtime"
	"sort"
	"strconv"
	"syscall"
	"unsafe"
)

const threadCPUTime = 3 // CLOCK_THREAD_CPUTIME_ID

func now() int64 {
	var used syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, threadCPUTime, uintptr(unsafe.Pointer(&used)), 0)
	return used.Sec*1000000000 + used.Nsec
}

func spend(part *int64, milliseconds int64, call func()) {
	start := now()
	at := start
	for at-start < milliseconds*1000000 {
		call()
		at = now()
	}
	*part += at - start
}

//go:noinline
func leaf(value uint64) uint64 {
	for i := 0; i < 200000; i++ {
		value = value*6364136223846793005 + 1442695040888963407
	}
	return value
}

//go:noinline
func ordering(value uint64) uint64 {
	words := make([]string, 500)
	for i := range words {
		value = value*6364136223846793005 + 1442695040888963407
		words[i] = strconv.FormatUint(value, 10)
	}
	sort.Slice(words, func(a, b int) bool { return words[a] < words[b] })
	return value + uint64(len(words[0]))
}

var from, to = make([]byte, 1<<18), make([]byte, 1<<18)

//go:noinline
func copying(value uint64) uint64 {
	for i := 0; i < 10; i++ {
		copy(to, from)
	}
	return value + uint64(to[value%100])
}

//go:noinline
func worker(copied *int64, done chan uint64) {
	runtime.LockOSThread()
	value := uint64(3)
	for i := 0; i < 12; i++ {
		spend(copied, 30, func() { value = copying(value) })
	}
	done <- value
}

func main() {
	runtime.LockOSThread()
	var leaves, ordered, copied int64
	value := uint64(1)
	done := make(chan uint64)
	go worker(&copied, done)
	value += <-done
	for i := 0; i < 12; i++ {
		spend(&leaves, 75, func() { value = leaf(value) })
		spend(&ordered, 45, func() { value = ordering(value) })
	}
	// The garbage collector has threads of its own: shares are parts of the process's whole time.
	var used syscall.Rusage
	syscall.Getrusage(0, &used)
	seconds, microseconds := used.Utime.Sec+used.Stime.Sec, used.Utime.Usec+used.Stime.Usec
	total := float64(seconds*1000000000+microseconds*1000) / 100
	fmt.Printf("leaf %.2f\n", float64(leaves)/total)
	fmt.Printf("ordering %.2f\n", float64(ordered)/total)
	fmt.Printf("copying %.2f\n", float64(copied)/total)
	if value == 42 {
		fmt.Println()
	}
}
