# Ruby: arithmetic, sorting.
def now = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

def leaf
  x = 1
  i = 0
  while i < 50_000
    x = (x * 77 + i) & 65535
    i += 1
  end
  x
end

def sorting = (1..2000).map { |i| i * 7919 % 3001 }.sort { |a, b| a <=> b }

def spend(seconds, call)
  start = at = now
  while at - start < seconds
    send(call)
    at = now
  end
  at - start
end

first = second = 0
8.times do
  first += spend(0.08, :leaf)
  second += spend(0.05, :sorting)
end
all = (first + second) / 100
puts format("leaf %.2f\nsorting %.2f", first / all, second / all)
