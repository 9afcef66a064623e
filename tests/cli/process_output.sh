#!/bin/bash
# Real programs print the same and end with the same status under the process provider as without it: each is
# sampled, with all the programs that it starts.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
chmod 755 .
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C
"$TALLY" stat --provider process -o counts -- true >out 2>err || skip_all "this tally has no process provider: $(head -n 1 err)"

# same NAME PROGRAMS SCRIPT [COMMAND…]: the script, by `COMMAND… sh`, with and without
same() {
	local name=$1 programs=$2 script=$3 program status
	shift 3
	for program in $programs; do
		have "$program" || { skip "$name" "$program is not installed"; return; }
	done
	printf 'exec 2>&1\ncd "$(dirname "$0")/%s" || exit 1\n%s\n' work "$script" >script
	rm -rf work && mkdir -m 777 work
	timeout -k 5 100 "$@" sh "$PWD/script" >plain </dev/null
	status=$?
	rm -rf work && mkdir -m 777 work
	rm -f shared/recording
	timeout -k 5 100 "$@" "$TALLY" record -q --provider process -F 999 -o "$PWD/shared/recording" -- sh "$PWD/script" >out 2>err </dev/null
	local sampled=$?
	echo "status $status without, $sampled with tally" >>err
	diff plain out >>err
	check "$name" [ $? = 0 -a "$sampled" = "$status" -a "$status" != 124 -a -s shared/recording ]
}
mkdir -m 777 shared

same sqlite3 sqlite3 'sqlite3 a.db "create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n where i<50000)
	insert into t select i, hex(i*i) from n; select count(*), sum(a), max(b) from t; create index i on t(b); select a from t where b like '"'%3132%'"' limit 5; pragma integrity_check"'
same python3 python3 'python3 - <<P
import subprocess, threading, signal, hashlib, multiprocessing, asyncio, time
def work(n): return hashlib.sha256(b"x" * n).hexdigest()[:8]
out = []
threads = [threading.Thread(target=lambda i=i: out.append(work(300000 + i))) for i in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(out))
print(subprocess.run(["sh", "-c", "echo out; exit 7"], capture_output=True))
with multiprocessing.Pool(2) as pool: print(pool.map(work, [1000, 2000, 3000]))
async def tick(): await asyncio.sleep(0.02); return work(5)
async def main(): return await asyncio.gather(*[tick() for _ in range(3)])
print(asyncio.run(main()))
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getsignal(61), sorted(signal.valid_signals())[-3:])
raise SystemExit(3)
P'
same node node 'cat >a.js <<N
const { execSync } = require("child_process"), { Worker, isMainThread, parentPort } = require("worker_threads"), crypto = require("crypto");
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
if (!isMainThread) { parentPort.postMessage(fib(24)); } else {
console.log(fib(27), execSync("echo child").toString(), crypto.pbkdf2Sync("a", "b", 2000, 16, "sha512").toString("hex"));
const w = new Worker(__filename); w.on("message", m => console.log("worker", m)); w.on("exit", c => { console.log("exit", c); process.exitCode = 4; }); }
N
node a.js'
same java "java javac" 'cat >A.java <<J
import java.util.*; import java.util.concurrent.*;
public class A { static long deep(int n) { return n == 0 ? 0 : 1 + deep(n - 1); }
static long over(long n) { return over(n + 1) + 1; }
public static void main(String[] a) throws Exception {
ExecutorService e = Executors.newFixedThreadPool(4); List<Future<Long>> l = new ArrayList<>();
for (int i = 0; i < 8; i++) { final int k = i; l.add(e.submit(() -> { long s = 0; for (int j = 0; j < 3000000; j++) s = s * 31 + j + k; return s; })); }
for (Future<Long> f : l) System.out.println(f.get()); e.shutdown();
System.out.println(deep(1000)); try { over(0); } catch (StackOverflowError x) { System.out.println("overflow"); }
String s = null; for (int i = 0; i < 20000; i++) try { s.length(); } catch (NullPointerException x) { if (i == 19999) System.out.println("null"); }
Process p = new ProcessBuilder("sh", "-c", "exit 6").start(); System.exit(p.waitFor()); } }
J
javac A.java && java -XX:+UseSerialGC -Xshare:auto A'
same make "make gcc" 'printf "%s\n" "all: a b c" "%: %.c" "	gcc -O2 -g -o \$@ \$<" >Makefile; for i in a b c; do echo "#include <stdio.h>
int main(void) { puts(\"$i\"); return 0; }" >$i.c; done; make -j2 --output-sync 2>&1 | sort; ./a && ./b && ./c; md5sum a b c; make missing'
same gcc gcc 'printf "#include <stdio.h>\nint main(void) { for (int i = 0; i < 3; i++) printf(\"%%%%d \", i); return 5; }\n" >a.c; gcc -O2 -S -o - a.c | md5sum; gcc -flto -O2 a.c -o a && ./a; s=$?; gcc nothing.c; exit $s'
same g++ g++ 'printf "#include <map>\n#include <string>\n#include <iostream>\nint main() { std::map<std::string, int> m; for (int i = 0; i < 99; i++) m[std::to_string(i %% 7)] += i; for (auto &x : m) std::cout << x.first << x.second << std::endl; try { throw 1; } catch (int) { std::cout << 1 << std::endl; } }\n" >a.cpp; g++ -O1 a.cpp -o a && ./a'
same xz xz 'seq 200000 >n; xz -T2 -k n; xz -dc n.xz | md5sum; xz -l n.xz | tail -1; xz -t Makefile; xz -9 -c n | wc -c'
same zstd zstd 'seq 300000 >n; zstd -q -T2 n; zstd -qdc n.zst | md5sum; wc -c <n.zst'
same git git 'git init -q .; git config user.name a; git config user.email a@b; for i in 1 2 3; do seq $((i * 1000)) >f; git add f; GIT_AUTHOR_DATE="@$i +0000" GIT_COMMITTER_DATE="@$i +0000" git commit -qm $i; done; git log --format=%H; git diff HEAD~2 --stat; git gc -q; git fsck; git show nothing'
same ruby ruby 'ruby -e "t = 4.times.map { |i| Thread.new { (1..100000).reduce(:+) + i } }; p t.map(&:value); p \`echo child\`; pid = fork { exit 9 }; p Process.wait2(pid)[1].exitstatus; trap(:USR1) { puts :trapped }; Process.kill(:USR1, \$\$); sleep 0.01; p Signal.list[%q(USR1)]; exit 2"'
same perl perl 'perl -e '"'"'$SIG{ALRM} = sub { print "alarm\n" }; alarm 1; $n = select(undef, undef, undef, 3); print "$n $!\n"; my $pid = fork; if (!$pid) { exit 8 } waitpid($pid, 0); print $? >> 8, "\n"; print `echo child`; my %h; $h{$_ % 977} += $_ for 1 .. 300000; print $h{5}, "\n"; exit 11'"'"
same curl "curl python3" 'mkdir d; seq 50000 >d/n; python3 -c "
import http.server, threading, subprocess, os, functools
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *a): pass
server = http.server.ThreadingHTTPServer((\"127.0.0.1\", 0), functools.partial(Quiet, directory=\"d\"))
threading.Thread(target=server.serve_forever, daemon=True).start()
url = \"http://127.0.0.1:%d/\" % server.server_port
for name in \"n\", \"missing\": print(subprocess.run([\"curl\", \"-s\", \"-f\", url + name], stdout=subprocess.PIPE).stdout[-9:], flush=True)
print(subprocess.run([\"curl\", \"-s\", \"-f\", url + \"missing\"]).returncode)
"; curl -s file:///no/such; echo $?'
same openssl openssl 'seq 100000 | openssl sha256; seq 100000 | openssl enc -aes-256-cbc -pbkdf2 -pass pass:a -S 0102030405060708 | md5sum; openssl genrsa -out k 2048; openssl rsa -in k -check -noout; openssl nothing'
same tar "tar gzip" 'mkdir d; for i in 1 2 3 4 5 6 7 8 9; do seq $((i * 1000)) >d/$i; done; tar --mtime=@0 --owner=0 --group=0 --sort=name -czf a.tgz d; tar -tzf a.tgz; tar -xzOf a.tgz | md5sum; tar -xf none'
same bash bash 'cat >s <<B
trap "echo trapped" USR1; trap "echo bye" EXIT; kill -USR1 \$\$
for i in {1..20}; do (exit \$i) & wait \$!; echo -n "\$? "; done; echo
coproc C { read x; echo "got \$x"; }; echo hello >&\${C[1]}; read y <&\${C[0]}; echo \$y
read -t 0.05 z </dev/zero; echo \$?; echo \${PIPESTATUS[@]}; sleep 0.1 | false | cat; echo \${PIPESTATUS[@]}
ulimit -c 0; { bash -c "kill -SEGV \\\$\\\$"; } 2>/dev/null; echo \$?; env | grep -c "LD_PRELOAD\|TALLY_PLAN"; exit 13
B
bash s'
same sort sort 'seq 300000 | md5sum; seq 300000 -1 1 | sort -n -S 1M --parallel=2 -T . | md5sum; seq 100000 -1 1 | sort -c; echo $?'
same awk awk 'seq 200000 | awk "{ s += \$1; n[\$1 % 13]++ } END { print s, n[5]; while ((\"echo a b\" | getline x) > 0) print x; system(\"exit 3\"); exit 9 }"'
same find "find xargs grep" 'mkdir -p d/e; for i in 1 2 3 4 5 6; do seq $i$i$i >d/e/$i; done; find d -type f | sort | xargs -P 2 -n 1 grep -c 1 | sort -n; find nothing'
same bzip2 bzip2 'seq 100000 >n; bzip2 -k n; bzip2 -dc n.bz2 | md5sum; bzip2 -t n'
same bc bc 'echo "scale = 400; 4 * a(1); 2 ^ 1000; 1 / 0" | bc -l'
same jq jq 'seq 20000 | jq -s "add, length, (map(. * 2) | max)"; echo "{" | jq .'
same gdb "gdb gcc" 'printf "int f(int n) { return n * 2; }\nint main(void) { return f(4); }\n" >a.c; gcc -g a.c -o a; gdb -nx -batch -ex "break f" -ex run -ex "bt -frame-info location" -ex continue ./a 2>&1 | grep -o "Breakpoint 1, f\|exited with code [0-9]*\|#[01]  f\|#[01]  main"'
same redis-server "redis-server redis-cli" 'redis-server --port 0 --unixsocket "$PWD/s" --save "" --io-threads 2 --daemonize no >log 2>&1 & for i in $(seq 100); do redis-cli -s s ping >/dev/null 2>&1 && break; sleep 0.05; done
	seq 2000 | sed "s/.*/set k& v&/" | redis-cli -s s | sort | uniq -c; redis-cli -s s get k77; redis-cli -s s eval "local n = 0 for i = 1, 300000 do n = n + i end return n" 0; redis-cli -s s save; redis-cli -s s dbsize; redis-cli -s s shutdown nosave; wait $!; echo $?'
same nginx "nginx curl" 'mkdir t; printf "error_log e.log; pid p; worker_processes 2; daemon off; events {} http { access_log off; client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; uwsgi_temp_path t; scgi_temp_path t; server { listen unix:$PWD/s; root $PWD; } }" >c; seq 100000 >n; nginx -p "$PWD" -c "$PWD/c" -e e.log & for i in $(seq 100); do [ -S s ] && break; sleep 0.05; done
	for i in 1 2 3 4 5; do curl -s --unix-socket s http://a/n | md5sum; done; curl -s -o none -w "%{http_code}\n" --unix-socket s http://a/x; nginx -p "$PWD" -c "$PWD/c" -e e.log -s quit; wait $!; echo $?'
postgres=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
user=
if [ "$(id -u)" = 0 ]; then user=$nobody; fi
if [ -z "$postgres" ]; then
	skip postgres "postgres is not installed"
elif [ -n "$user" ] && ! $user "$TALLY" stat --provider process -o shared/counts -- true >out 2>err; then
	skip postgres "root may not run it, and another user not tally: $(head -n 1 err)"
else
	# shellcheck disable=SC2086
	same postgres "" "PATH=$postgres:\$PATH"'; export HOME=$PWD; initdb -D d -N -A trust --no-locale >log 2>&1 || cat log; pg_ctl -D d -w -l log -o "-F -k $PWD -c listen_addresses=" start >/dev/null; psql -h "$PWD" -d postgres -tAc "create table t as select i, md5(i::text) m from generate_series(1, 20000) i; select count(*), max(m) from t; select sum(length(m)) from t where i % 7 = 3; select 1 / 0"; echo $?; pg_ctl -D d -w -m fast stop; echo $?' $user
fi
done_testing
