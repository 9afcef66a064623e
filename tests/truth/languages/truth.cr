# Crystal: arithmetic, sorting by a block.
@[NoInline]
def leaf
  x = 1_i64
  400_000.times { |i| x = (x &* 77 &+ i) & 65_535 }
  x
end

@[NoInline]
def sorting
  Array.new(5000) { |i| i.to_i64 * 7919 % 3001 }.sort! { |a, b| b <=> a }[5]
end

def now
  times = Process.times
  times.utime + times.stime
end

def spend(seconds, &call : -> Int64)
  start = now
  sum = 0_i64
  while now - start < seconds
    sum &+= call.call
  end
  now - start
end

first = second = 0.0
8.times do
  first += spend(0.08) { leaf }
  second += spend(0.05) { sorting }
end
printf "leaf %.2f\nsorting %.2f\n", 100 * first / (first + second), 100 * second / (first + second)
