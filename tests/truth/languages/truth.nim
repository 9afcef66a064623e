# Nim: arithmetic, sorting by a closure.
import std/[algorithm, strformat, times]

var sum {.global.} = 0

proc leaf() {.noinline, nimcall.} =
  var x = 1
  for i in 0 ..< 400_000:
    x = (x * 77 + i) and 65_535
  sum += x

proc sorting() {.noinline, nimcall.} =
  var items = newSeq[int](5000)
  for i in 0 ..< items.len:
    items[i] = i * 7919 mod 3001
  items.sort(proc (a, b: int): int = b - a)
  sum += items[5]

proc spend(seconds: float, call: proc () {.nimcall.}): float =
  let start = cpuTime()
  while cpuTime() - start < seconds:
    call()
  cpuTime() - start

proc main() =
  var first, second = 0.0
  for round in 1 .. 8:
    first += spend(0.08, leaf)
    second += spend(0.05, sorting)
  let all = (first + second) / 100
  echo &"leaf {first / all:.2f}"
  echo &"sorting {second / all:.2f}"

main()
