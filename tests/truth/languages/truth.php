<?php
// PHP: arithmetic and sorting.
function now() { $u = getrusage(); return $u["ru_utime.tv_sec"] * 1000 + $u["ru_utime.tv_usec"] / 1000 + $u["ru_stime.tv_sec"] * 1000 + $u["ru_stime.tv_usec"] / 1000; }

function leaf() { $x = 1; for ($i = 0; $i < 100000; $i++) $x = ($x * 77 + $i) & 65535; return $x; }

function sorting() { $a = []; for ($i = 0; $i < 3000; $i++) $a[] = ($i * 7919) % 3001; sort($a); return $a[5]; }

function spend($ms, $call) { $start = $now = now(); while ($now - $start < $ms) { $call(); $now = now(); } return $now - $start; }

$parts = ["leaf" => 0, "sorting" => 0];
for ($round = 0; $round < 8; $round++) {
    $parts["leaf"] += spend(80, "leaf");
    $parts["sorting"] += spend(50, "sorting");
}
$whole = now(); // with PHP's start
foreach ($parts as $name => $ms) printf("%s %.2f\n", $name, 100 * $ms / $whole);
