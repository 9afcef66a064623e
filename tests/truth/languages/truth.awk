# awk: arithmetic, sorting.
function leaf(  i, x) { x = 1; for (i = 0; i < 60000; i++) x = (x * 77 + i) % 65536; return x }
function sorting(  i, items) { for (i = 0; i < 5000; i++) items[i] = i * 7919 % 3001; return asort(items) }
BEGIN { for (i = 0; i < 100; i++) { leaf(); sorting() } }
