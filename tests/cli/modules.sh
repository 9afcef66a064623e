#!/bin/bash
# Kernel modules and their unlinked files.  Names, lines and inlined functions equal those that
# addr2line prints for each section, at the addresses that the kernel assigns.  The recording is of
# another kernel, made here like perf's; gcc builds the module.  TAP; $TALLY is the binary.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export HOME=$scratch XDG_CACHE_HOME=$scratch/cache PAGER=cat LC_ALL=C
mkdir cache

for tool in gcc ld objcopy readelf addr2line python3; do
	have $tool || { echo "1..0 # SKIP there is no $tool"; exit 0; }
done

cat >shop.c <<'C'
static volatile unsigned long sold, returned;
static inline __attribute__((always_inline)) void weigh(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sold += i;
}
static inline __attribute__((always_inline)) void wrap(unsigned long n)
{
	weigh(n);
	returned ^= n;
}
__attribute__((noinline)) void shop_sell(unsigned long n)
{
	wrap(n);
	weigh(n + 1);
}
__attribute__((noinline, section(".text.unlikely"))) void shop_complain(unsigned long n)
{
	returned += n;
	wrap(2 * n);
}
C
cat >shop_init.c <<'C'
void shop_sell(unsigned long n);
void shop_complain(unsigned long n);
__attribute__((section(".init.text"))) int init_module(void) { shop_sell(3); return 0; }
__attribute__((section(".exit.text"))) void cleanup_module(void) { shop_complain(3); }
C
folder=lib/modules/6.99-shop/kernel/drivers/shop
build() { # FLAG…
	gcc -O2 -ffreestanding -fno-pie -fno-asynchronous-unwind-tables -g "$@" -c -o a.o "$scratch/shop.c" &&
		gcc -O2 -ffreestanding -fno-pie -fno-asynchronous-unwind-tables -g "$@" -c -o b.o "$scratch/shop_init.c" &&
		ld -r --build-id=sha1 -o shop-front.ko b.o a.o
}
cat >recording.py <<'P'
"""recording.py MODULE PATH-IN-RECORD FILE: samples of every third byte of the module's code; `expected` has what they are in."""
import re, subprocess, sys
sys.path.insert(0, sys.argv[4])
from make_recording import *
module, path, out = sys.argv[1:4]
START = 0xffffffffc0a80000
def run(*command): return subprocess.run(command, check=True, capture_output=True, text=True).stdout
sections, end = {}, START
for line in run("readelf", "-SW", module).splitlines():
    match = re.match(r" +\[ *\d+\] (\S+) +(PROGBITS|NOBITS) +\S+ +\S+ +(\S+) +\S+ +(\S*) +\d+ +\d+ +(\d+)", line)
    if match and match[4] == "AX":
        size, align = int(match[3], 16), max(int(match[5]), 1)
        if match[1].startswith(".init"):
            continue
        sections[match[1]] = (end + align - 1) // align * align, size
        end = sections[match[1]][0] + size
samples = []
for name, (start, size) in sections.items():
    offsets = list(range(0, size, 3))
    told = run("addr2line", "-a", "-f", "-i", "-s", "-j", name, "-e", module, *[hex(offset) for offset in offsets]) if offsets else ""
    for offset, block in zip(offsets, re.split(r"^0x[0-9a-f]+\n", told, flags=re.M)[1:]):
        lines = block.split("\n")[:-1]
        frames = [f"{lines[i]} {lines[i + 1].split(' ')[0]}" for i in range(0, len(lines), 2)]
        samples.append((start + offset, frames))
event = Event("cycles", [5], type=0, sample_type=IP | TID | TIME | PERIOD | CALLCHAIN)
who = u32(7, 7) + u64(1)
def kernel_map(start, length, offset, filename):
    return record("MMAP", u32(-1, 0) + u64(start, length, offset) + padded(filename) + who, KERNEL)
records = [kernel_map(0xffffffff81000000, 0x1f000000, 0xffffffff81000000, "[kernel.kallsyms]_text"),
           kernel_map(START, (end - START + 4095) // 4096 * 4096, 0, path)]
with open("expected", "w") as expected:
    for number, (address, frames) in enumerate(samples):
        records.append(record("SAMPLE", u64(address) + u32(7, 7) + u64(number + 2, 1, 2, (1 << 64) - 128, address), KERNEL)) # PERF_CONTEXT_KERNEL
        print(f"{address:x}", " < ".join(frame.split()[0] for frame in frames), file=expected)
with open("lines", "w") as lines:
    print("\n".join(sorted(frames[0] for _, frames in samples)), file=lines)
build_id = bytes.fromhex(re.search(r"Build ID: (\w+)", run("readelf", "-n", module))[1])
known = record("HEADER_BUILD_ID", u32(-1) + build_id + bytes([20, 0, 0, 0]) + padded(path, 64), 1 << 15 | KERNEL)
write_file(out, [event], records, {**common_features([event]), SPECIAL["osrelease"]: text("6.99-shop"), 2: known})
P
# recorded MODULE PATH-IN-RECORD
recorded() { python3 recording.py "$1" "$2" shop.data "$here" >out 2>&1; }
# Prints the frames of each sample, in the form of `expected`.
frames() {
	timeout 60 "$TALLY" script --stdio --symfs root "$@" shop.data >script 2>err
	awk '/^\t/ { address = $1; name = $2; sub(/\+0x[0-9a-f]+$/, "", name); line = line (line ? " < " : address " ") name }
		/^$/ { if (line) print line; line = "" } END { if (line) print line }' script >frames
}
same_frames() { frames && [ -s expected ] && diff expected frames >out; }
# Prints the innermost functions and lines, from an export for the Firefox Profiler.
same_lines() {
	timeout 60 "$TALLY" export --raw-addresses --format firefox -o - --symfs root shop.data >firefox.json 2>err && python3 - >shown <<'P'
import gzip, json
data = open("firefox.json", "rb").read()
profile = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
rows = []
for thread in profile["threads"]:
    strings = thread.get("stringArray") or profile["shared"]["stringArray"]
    for stack in thread["samples"]["stack"]:
        frame = thread["stackTable"]["frame"][stack]
        function = thread["frameTable"]["func"][frame]
        file = thread["funcTable"]["fileName"][function]
        name = strings[thread["funcTable"]["name"][function]]
        where = strings[file].split("/")[-1] if file is not None else "??"
        rows.append(f"{name} {where}:{thread['frameTable']['line'][frame]}")
print("\n".join(sorted(rows)))
P
	diff lines shown >out
}
no_frames() { frames; grep -c . frames >out; ! grep -q shop_ frames; }

mkdir -p "root/$folder" "root/usr/lib/debug/$folder"
module=root/$folder/shop-front.ko debug=root/usr/lib/debug/$folder/shop-front.ko path=/$folder/shop-front.ko
build -gdwarf-5 >out 2>&1 && recorded shop-front.ko "$path" || { echo "1..0 # SKIP no module can be built here: $(head -c 200 out | tr '\n#' '  ')"; exit 0; }
check "without the module's file, none of its functions has a name" no_frames
check "… and a message says why" grep -q 'kernel functions are not named' err
cp shop-front.ko $module
check "names and inlined functions are the same as addr2line's" same_frames
unnamed='kernel functions are not named'
check "… and no message says that names are missing" eval 'frames && ! grep "$unnamed" err'
check "… lines too" same_lines
frames --no-inline && cut -d' ' -f1 expected >addresses
check "… --no-inline shows only the symbols' functions" eval '[ "$(awk "{ print \$NF }" expected)" = "$(awk "{ print \$2 }" frames)" ]'
check "the functions are in the module's object" grep -q 'shop_sell+0x3 (\[shop_front\])' script

objcopy --strip-debug shop-front.ko $module
check "a module without debug information has names of functions" eval 'frames; grep -q shop_complain frames && ! grep -q weigh frames'
cp shop-front.ko $debug
check "with a copy in /usr/lib/debug, it has all names and lines" same_frames
objcopy --only-keep-debug shop-front.ko $debug
check "… also if the copy has only debug information" same_frames
check "… with lines" same_lines
rm $debug
for packer in "xz -c --check=crc32" "zstd -qc" "gzip -c"; do
	name=${packer%% *}; suffix=${name/zstd/zst}; suffix=${suffix/gzip/gz}
	have $name || { skip "a module compressed by $name" "there is no $name"; continue; }
	rm -f $module* && $packer shop-front.ko >$module.$suffix
	recorded shop-front.ko "$path.$suffix"
	check "a module compressed by $name" same_frames
	rm -f $module.$suffix
done

cp shop-front.ko $module
recorded shop-front.ko "$path"
printf '%s T %s%s\n' ffffffff81000000 _text '' ffffffff81001000 do_it '' ffffffffc0a80000 renamed '	[shop_front]' >kallsyms
named() { frames "${@:2}" && grep -q "^ffffffffc0a80003 .*$1" frames; }
check "kallsyms' names win over those of the module's file" named '< renamed$' --kallsyms kallsyms
check "… unless --modules asks for the files" named '< shop_sell$' --kallsyms kallsyms --modules
printf '%s T %s%s\n' ffffffff91000000 _text '' ffffffff91001000 do_it '' ffffffffc0c00000 shop_sell '	[shop_front]' >moved
check "a module that was loaded elsewhere since is still found" eval 'frames --kallsyms moved && diff expected frames >out'

annotated() { timeout 60 "$TALLY" annotate --stdio --no-source -i shop.data "$@" cleanup_module >out 2>&1; }
check "without kernel symbols, annotate says so and goes on" eval 'timeout 60 "$TALLY" annotate --stdio -i shop.data >out 2>&1 && grep -q "no kernel symbol gives" out'
annotated --symfs root
if grep -q libLLVM out; then
	skip "a module's code comes from its file" "there is no libLLVM"
else
	check "a module's code comes from its file" grep -q '^ *[0-9.]*% .* ffffffffc0a8[0-9a-f]* ' out
	[ "$(uname -m)" = x86_64 ] && check "… and shows the names of called functions" grep -q '<shop_complain>' out
	objcopy --only-keep-debug shop-front.ko $debug
	annotated --symfs root
	check "… but not from a copy that has only debug information" grep -q '^ *[0-9.]*% .* ffffffffc0a8[0-9a-f]* ' out
	rm $module
	annotated --symfs root
	check "without the file, annotate says that it is missing" eval 'tr "\n" " " <out | grep -q "no disassembly: .*shop-front.ko has no"'
	rm $debug
fi

cp shop-front.ko $module
recorded shop-front.ko "[shop_front]"
check "without its path in the recording the file isn't found" no_frames
printf 'kernel/net/other.ko: \nkernel/drivers/shop/shop-front.ko: kernel/net/other.ko\n' >root/lib/modules/6.99-shop/modules.dep
check "… except by modules.dep" same_frames

build -gdwarf-4 && recorded shop-front.ko "$path"
check "the file of another build is not used" no_frames
cp shop-front.ko $module
check "DWARF 4" same_frames
check "… with lines" same_lines
if build -gdwarf-5 -gz 2>out; then
	cp shop-front.ko $module
	recorded shop-front.ko "$path"
	check "compressed debug sections" same_frames
	check "… with lines" same_lines
fi
head -c 3000 shop-front.ko >$module
check "a truncated file does no harm" no_frames
echo "1..$number"
