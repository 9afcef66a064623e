// Small loops, each with one line that takes most of the time (see slow_lines.py).
package main

import (
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"syscall"
)

const cells = 1 << 24

var next [cells]uint32
var counter uint64
var seventeen, big uint64 = 17, 0x123456789abcdef
var sink uint64

func prepare() {
	seed := uint64(88172645463325252)
	random := func() uint64 {
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		return seed
	}
	for i := range next {
		next[i] = uint32(i)
	}
	for i := uint64(cells - 1); i > 0; i-- {
		j := random() % i
		next[i], next[j] = next[j], next[i]
	}
}

//go:noinline
func load_chain(rounds uint64) uint64 {
	var at, sum uint64
	for i := uint64(0); i < rounds; i++ {
		at = uint64(next[(at+i)%cells]) // slow
		sum += i
		sum ^= 3
	}
	return sum + at
}

//go:noinline
func divide(rounds uint64) uint64 {
	x, sum, by, from := uint64(1), uint64(0), seventeen, big
	for i := uint64(0); i < rounds; i++ {
		x = from / (x | by) / (x | by) / (x | 1) // slow, without: x |= from | by
		sum += i
		sum ^= 3
	}
	return sum + x
}

//go:noinline
func root(rounds uint64) uint64 {
	x, sum := 0.5, uint64(0)
	for i := uint64(0); i < rounds; i++ {
		x = math.Sqrt(math.Sqrt(math.Sqrt(x + 1))) // slow, without: x = math.Abs(x)
		sum += i
		sum ^= 3
	}
	return sum + uint64(x)
}

//go:noinline
func atomic_add(rounds uint64) uint64 {
	sum := uint64(0)
	for i := uint64(0); i < rounds; i++ {
		sum += i
		atomic.AddUint64(&counter, atomic.AddUint64(&counter, 1)) // slow, without: _ = atomic.AddUint64
		sum ^= 3
	}
	return sum
}

func cpuTime() float64 {
	var usage syscall.Rusage
	syscall.Getrusage(0, &usage)
	return float64(usage.Utime.Nano()) * 1e-9
}

func main() {
	prepare()
	kernels := []struct {
		name  string
		run   func(uint64) uint64
		batch uint64
	}{
		{"load_chain", load_chain, 100000}, {"divide", divide, 1000000}, {"root", root, 1000000},
		{"atomic_add", atomic_add, 1000000},
	}
	for _, kernel := range kernels {
		wanted := len(os.Args) < 2
		for _, name := range os.Args[1:] {
			wanted = wanted || name == kernel.name
		}
		if !wanted {
			continue
		}
		begin, spent, rounds := cpuTime(), 0.0, uint64(0)
		for spent < 0.15 {
			sink = kernel.run(kernel.batch)
			rounds += kernel.batch
			spent = cpuTime() - begin
		}
		fmt.Printf("%s %.6f\n", kernel.name, 1e9*spent/float64(rounds))
	}
}
