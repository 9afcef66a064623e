-- Lua and LuaJIT: arithmetic, and sorting with a comparison in Lua.
local now = os.clock

function leaf() local x = 1 for i = 1, 100000 do x = (x * 77 + i) % 65536 end return x end

function sorting()
  local words = {}
  for i = 1, 2000 do words[i] = (i * 7919) % 3001 end
  table.sort(words, function(a, b) return a < b end)
  return words[5]
end

function spend(seconds, call)
  local start = now()
  local at = start
  while at - start < seconds do call() at = now() end
  return at - start
end

local first, second = 0, 0
for round = 1, 8 do
  first = first + spend(0.08, leaf)
  second = second + spend(0.05, sorting)
end
print(string.format("leaf %.2f\nsorting %.2f", 100 * first / (first + second), 100 * second / (first + second)))
