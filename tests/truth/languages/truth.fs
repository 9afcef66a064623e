\ Forth: arithmetic, recursion.
: leaf ( -- n ) 1 200000 0 do 77 * i + 65535 and loop ;
: fib ( n -- m ) dup 2 < if drop 1 exit then dup 1- recurse swap 2 - recurse + ;
: work ( -- ) 60 0 do leaf drop 24 fib drop loop ;
work bye
