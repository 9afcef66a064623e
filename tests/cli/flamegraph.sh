#!/bin/bash
# SPEC G5: fold and flamegraph.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1

# try NAME command…: ok if it succeeds
try() { name=$1; shift; if "$@"; then ok "$name"; else not_ok "$name"; fi; }
# run EXPECTED_STATUS command…: stdout to ./out, stderr to ./err
run() { expected=$1; shift; "$@" >out 2>err; status=$?; [ "$status" = "$expected" ]; }
has() { grep -qF -- "$1" out; }
warns() { grep -qF -- "$1" err; }

cat >script.txt <<'END'
V8 Worker 10/11 [000] 94564.109216:        100 cycles:u: 
	          7dd1 ns::find(int const&)+0x51 (/usr/lib/libv8.so.1)
	          1234 main+0x4 (/opt/node)

V8 Worker 10/12 [001] 94564.109217:         50 cycles:u: 
	ffffffff8103ce3b native_safe_halt+0xa ([kernel.kallsyms])
	          1234 main+0x4 (/opt/node)

V8 Worker 10/12 [001] 94564.109218:          7 faults: 
	          1234 main+0x4 (/opt/node)

END
printf 'V8_Worker;main;native_safe_halt 50\nV8_Worker;main;ns::find 100\n' >folded.txt
printf 'V8_Worker-10/11;main;ns::find 1\nV8_Worker-10/12;main;native_safe_halt_[k] 1\n' >tids.txt

same() { run 0 "$@" && cmp -s "$expect" out; }
expect=folded.txt
try "a file is folded" same "$TALLY" fold script.txt
warning() { "$TALLY" fold script.txt 2>err >out; warns "left out 1 sample of other events than 'cycles:u'; --event faults"; }
try "samples of other events are left out with a warning" warning
piped() { "$TALLY" fold <script.txt >out 2>err && cmp -s folded.txt out && "$TALLY" fold - <script.txt 2>err | cmp -s - folded.txt; }
try "standard input is read if it is a pipe or file, or with -" piped
try "folded text folds to itself" same "$TALLY" fold -i folded.txt
into() { "$TALLY" fold script.txt -o into.txt 2>err >out && cmp -s into.txt folded.txt; }
try "-o writes a file; options may follow the input" into
if [ -c /dev/full ]; then
	full() { "$TALLY" "$1" folded.txt >/dev/full 2>err; [ $? = 1 ] && [ "$(grep -c 'No space left' err)" = 1 ]; }
	try "fold prints one error for a full disk" full fold
	try "flamegraph prints one error for a full disk" full flamegraph
fi
expect=tids.txt
try "--tid, --all and --weight samples" same "$TALLY" fold --tid --all --weight samples script.txt

other() { run 0 "$TALLY" fold --event faults script.txt && has 'V8_Worker;main 7'; }
try "--event selects the event" other
missing() { run 1 "$TALLY" fold --event nope script.txt && warns "it has samples of 'cycles:u'"; }
try "for an unknown event, the error names one with samples" missing
no_recording() { run 1 "$TALLY" fold --comm main script.txt && warns "only recordings can be filtered"; }
try "filters need a recording, not text" no_recording
malformed() { (echo nonsense; cat script.txt) >bad.txt; run 0 "$TALLY" fold bad.txt && warns 'skipped 1 of 12 lines'; }
try "malformed lines are skipped with one warning" malformed
nothing() { run 1 "$TALLY" fold /dev/null && warns 'empty' && run 1 "$TALLY" fold none.txt && warns 'none.txt'; }
try "an empty or missing input is an error" nothing
misuse() { run 2 "$TALLY" fold --weight kilos x && run 2 "$TALLY" fold a b && run 2 "$TALLY" flamegraph --format png x &&
	run 2 "$TALLY" flamegraph --theme blue x && run 2 "$TALLY" flamegraph --width 3 x && run 2 "$TALLY" flamegraph -i x -- ls; }
try "wrong options and arguments are refused" misuse

by_suffix() { run 0 "$TALLY" flamegraph script.txt -o a.svg && run 0 "$TALLY" flamegraph script.txt -o a.html &&
	head -c 5 a.svg | grep -q '<?xml' && head -c 15 a.html | grep -qi '<!doctype html>' && warns 'wrote a.html'; }
try "the ending of the output's name selects SVG or HTML" by_suffix
by_format() { run 0 "$TALLY" flamegraph --format html script.txt && has '<!DOCTYPE html>' &&
	run 0 "$TALLY" flamegraph script.txt && has '<?xml'; }
try "--format selects the format; standard output gets SVG by default" by_format
repeat() { "$TALLY" flamegraph script.txt >one 2>err && "$TALLY" flamegraph script.txt >two 2>err && cmp -s one two; }
try "the same input gives the same bytes" repeat
unwritable() { run 1 "$TALLY" flamegraph script.txt -o none/a.svg && warns 'none/a.svg'; }
try "a file that can't be written is an error" unwritable
no_room() { # like a full disk
	cp a.svg kept.svg && (trap '' XFSZ; ulimit -f 2; "$TALLY" flamegraph script.txt -o kept.svg 2>err >out) && return 1
	warns 'writing kept.svg failed' && cmp -s a.svg kept.svg && [ -z "$(find . -name '.tally-*')" ]
}
try "… and the existing file stays as it was" no_room
replaced() { (umask 027; "$TALLY" flamegraph script.txt -o fresh.svg 2>err >out) && [ "$(stat -c %a fresh.svg)" = 640 ] &&
	chmod 604 kept.svg && "$TALLY" flamegraph script.txt -o kept.svg 2>err >out && [ "$(stat -c %a kept.svg)" = 604 ] &&
	ln -s kept.svg link.svg && "$TALLY" flamegraph --icicle script.txt -o link.svg 2>err >out && [ -L link.svg ] &&
	! cmp -s a.svg kept.svg && run 0 "$TALLY" flamegraph script.txt -o /dev/null; }
try "a new file has the usual mode, an old one keeps its own, links are followed" replaced
kinds() { run 2 "$TALLY" flamegraph script.txt -o a.png && run 2 "$TALLY" flamegraph script.txt -o a.json && warns 'an .html file'; }
try "an output name with another format's ending is refused" kinds

self_contained() { ! grep -nE '(src|href)="|url\(|@import|https?:' a.svg a.html | grep -v '"http://www.w3.org/' |
	grep -v "'http://www.w3.org/" >out; }
try "the files load nothing from outside" self_contained

if command -v python3 >/dev/null; then
	printf '</script><b>&"\x27;]]>;\xff\x01\xc3;\xef\xbf\xbf 5\n' >hostile.txt
	well_formed() { "$TALLY" flamegraph hostile.txt -o h.svg --title '<&">]]>' 2>err >out &&
		python3 -c 'import xml.dom.minidom, json; d = xml.dom.minidom.parse("h.svg")
s = [x for x in d.getElementsByTagName("script") if x.getAttribute("type") == "application/json"]
assert json.loads(s[0].firstChild.data)["title"] == "<&\">]]>"' 2>>err; }
	try "hostile names leave the SVG well-formed, its data JSON" well_formed
	html_parts() { "$TALLY" flamegraph hostile.txt -o h.html 2>err >out && python3 -c '
import html.parser, json
class P(html.parser.HTMLParser):
    tags = []; data = ""
    def handle_starttag(self, tag, attrs): self.tags.append(tag)
    def handle_data(self, data):
        if self.tags and self.tags[-1] == "script" and not self.data: self.data = data
p = P(); p.feed(open("h.html").read())
assert "b" not in p.tags and p.tags.count("script") == 2, p.tags
assert json.loads(p.data)["threads"][0] == "</script><b>&\"\x27"' 2>>err; }
	try "hostile names leave the HTML in one piece" html_parts
else
	skip "hostile names: the SVG stays well-formed, its data stay JSON" "python3 is missing"
	skip "hostile names: the HTML stays intact" "python3 is missing"
fi

big() { awk 'BEGIN { srand(1); for (i = 0; i < 20000; i++) { s = "t" i % 5; for (k = 0; k < 25; k++)
		s = s ";function_" int(rand() * (k < 8 ? 3 : 4000)); print s, 1 + i % 9 } }' >big.txt &&
	run 0 "$TALLY" flamegraph big.txt -o big.html && [ "$(stat -c %s big.html)" -lt 5000000 ]; }
try "20,000 distinct stacks stay below 5 MB" big

echo "1..$number"
