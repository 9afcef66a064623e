# Tcl: byte code, sorting by a command.
proc leaf {} { set x 1; for {set i 0} {$i < 20000} {incr i} { set x [expr {($x * 77 + $i) & 65535}] }; return $x }
proc larger {a b} { expr {$b - $a} }
proc sorting {} {
    set items {}
    for {set i 0} {$i < 800} {incr i} { lappend items [expr {$i * 7919 % 3001}] }
    lindex [lsort -command larger $items] 5
}
set end [expr {[clock milliseconds] + 1200}]
while {[clock milliseconds] < $end} { leaf; sorting }
