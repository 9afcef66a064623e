(* OCaml: arithmetic, sorting. *)
let now () = Sys.time () *. 1000.0

let [@inline never] leaf () =
  let x = ref 1 in
  for i = 0 to 199999 do
    x := (!x * 77 + i) land 65535
  done;
  !x

let [@inline never] sorting () =
  let sum = ref 0 in
  for _ = 1 to 10 do
    sum := !sum + List.hd (List.sort compare (List.init 500 (fun i -> i * 7919 mod 3001)))
  done;
  !sum

let [@inline never] spend ms call =
  let start = now () in
  let at = ref start in
  while !at -. start < ms do
    ignore (Sys.opaque_identity (call ()));
    at := now ()
  done;
  !at -. start

let () =
  let first = ref 0.0 and second = ref 0.0 in
  for _ = 1 to 8 do
    first := !first +. spend 80.0 leaf;
    second := !second +. spend 50.0 sorting
  done;
  let all = (!first +. !second) /. 100.0 in
  Printf.printf "leaf %.2f\nsorting %.2f\n" (!first /. all) (!second /. all)
