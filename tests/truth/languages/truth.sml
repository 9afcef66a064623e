(* Standard ML: arithmetic, sorting. *)
val timer = Timer.totalCPUTimer ()
fun now () = let val {usr, sys} = Timer.checkCPUTimer timer in Time.toReal (Time.+ (usr, sys)) * 1000.0 end
fun leaf () = let fun loop (0, x) = x | loop (i, x) = loop (i - 1, (x * 77 + i) mod 65536) in loop (100000, 1) end
fun insert (x, []) = [x] | insert (x, y :: rest) = if x <= y then x :: y :: rest else y :: insert (x, rest)
fun sorting () = let fun loop (0, all) = all | loop (i, all) = loop (i - 1, insert (i * 7919 mod 301, all)) in hd (loop (300, [])) end
fun spend ms call =
  let val start = now () fun loop at = if at - start < ms then (call (); loop (now ())) else at - start in loop start end
fun rounds (0, first, second) = (first, second)
  | rounds (n, first, second) =
      let val a = spend 80.0 leaf val b = spend 50.0 sorting in rounds (n - 1, first + a, second + b) end
fun main () =
  let val (first, second) = rounds (8, 0.0, 0.0) val all = (first + second) / 100.0
  in print ("leaf " ^ Real.fmt (StringCvt.FIX (SOME 2)) (first / all) ^ "\nsorting " ^ Real.fmt (StringCvt.FIX (SOME 2)) (second / all) ^ "\n") end
