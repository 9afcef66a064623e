#!/bin/bash
# Records programs with copies of their stacks (C, C++, Rust if there is a compiler, signal
# handlers), and compares how tally and libdwfl unwind the samples: `unwind_samples.sh PROGRAM
# SIGNALS SAMPLES`.
set -u
compare=$(realpath "$1") signals=$(realpath "$2") wanted=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

skip() { echo "1..0 # SKIP $1"; exit 0; }
perf=$(command -v perf) || skip "perf is not installed"
"$perf" record -q -e cpu-clock --call-graph dwarf -o probe.data true >probe.log 2>&1 </dev/null ||
	skip "perf can't record here: $(head -1 probe.log)"

# Small copies as well as large ones: truncated stacks must end alike.
files=()
record() { # name frequency bytes command…
	local name=$1 frequency=$2 bytes=$3
	shift 3
	"$perf" record -q -z -e cpu-clock -F "$frequency" --call-graph "dwarf,$bytes" -o "$name.data" "$@" \
		>"$name.log" 2>&1 </dev/null && files+=("$name.data")
}

cat >templates.cpp <<'END'
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>
int main()
{
	std::map<std::string, std::vector<int>> lists;
	for (int i = 0; i < 100; i++)
		lists[std::to_string(i % 10)].push_back(i);
	std::regex expression("a(b|c)*d");
	return std::regex_match("abcd", expression) + (int)lists.size() > 100;
}
END
cat >strings.rs <<'END'
use std::collections::HashMap;
fn main() {
    let mut total = 0;
    for round in 0..60 {
        let mut words: Vec<String> = (0..4000).map(|i| format!("{}", i * 7919 % 1000 + round)).collect();
        words.sort();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for word in &words { *counts.entry(word).or_default() += 1; }
        total += counts.values().max().unwrap();
    }
    println!("{}", total);
}
END
python='
import json, re
data = [{"a": i, "b": str(i)} for i in range(3000)]
for _ in range(40): json.loads(json.dumps(data)); re.findall(r"\d+", json.dumps(data)); sorted(data, key=lambda x: x["b"])
'
rust=
command -v rustc >/dev/null && rustc -O -C force-frame-pointers=no -o strings strings.rs >/dev/null 2>&1 && rust=./strings
[ -n "$rust" ] || echo "# without Rust: there is no rustc"

# Repeats until there are enough samples; mostly with 16 KiB, so that few stacks are truncated.
frequency=2000
[ "$wanted" -gt 20000 ] && frequency=5000
for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
	record "cpp$round" $frequency 16384 g++ -O2 -c templates.cpp -o /dev/null
	record "signals$round" 4000 16384 "$signals" 0.4
	record "small$round" 4000 2048 "$signals" 0.1
	record "c$round" 2000 8192 python3 -c "$python"
	[ -z "$rust" ] || record "rust$round" 4000 8192 $rust
	have=$("$compare" 0 "${files[@]}" | awk '/^# +[0-9]+ [a-z]/ { sum += $2 } END { print sum + 0 }')
	[ "$have" -ge "$wanted" ] && break
done
exec "$compare" "$wanted" "${files[@]}"
