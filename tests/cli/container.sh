#!/bin/bash
# --container: `stat`, `record` and `top` measure the processes in a container's or service's
# cgroups, found by name or ID.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
trap 'end_programs; remove_cgroups; rm -rf "$scratch"' EXIT
pids=
end_programs() {
	[ -z "$pids" ] || { kill $pids; wait $pids; } 2>/dev/null
	pids=
}
cd "$scratch" || exit 1

id=$(printf '%08x' $$)$(head -c 28 /dev/urandom | od -An -v -tx1 | tr -d ' \n')
service=tally-test-$$.service
mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -n "$mount" ] || skip_all "no cgroup hierarchy of version 2 is mounted"
remove_cgroups() {
	rmdir "$mount/docker-$id.scope/inner" "$mount/docker-$id.scope" "$mount/$service" 2>/dev/null
}
mkdir -p "$mount/docker-$id.scope/inner" "$mount/$service" 2>/dev/null || skip_all "cgroups can't be made in $mount (root may)"

# CGROUP NAME: starts a program of that name in the cgroup.
cat >works.sh <<'END'
while :; do :; done
END
spin() {
	cp /bin/sh "$2"
	(echo "$BASHPID" >"$mount/$1/cgroup.procs" && exec "./$2" works.sh) &
	pids="$pids $!"
	until grep -q "^$!\$" "$mount/$1/cgroup.procs" && grep -q "^$2\$" /proc/$!/comm; do sleep 0.05; done
}
spin "docker-$id.scope" first
spin "docker-$id.scope/inner" second
spin "$service" third

has() { grep -qF -- "$1" err; }

timeout 60 "$TALLY" stat --container "${id:0:12}" --per-thread -x, -e task-clock sleep 0.3 >out 2>err
check "stat counts each process of a container, found by its ID" eval 'grep -q "^first-" err && grep -q "^second-" err && ! grep -q third err'

timeout 60 "$TALLY" stat --container "tally-test-$$" -e task-clock sleep 0.3 >out 2>err
check "stat counts a service, and names it" eval 'has "container tally-test-$$ (1 process)"'

timeout 60 "$TALLY" record --container "docker-$id.scope" -e cpu-clock -o c.data sleep 0.5 >out 2>err
"$TALLY" script -i c.data -F comm 2>err | sort -u | tr -d ' ' >out
check "record samples its processes and no others" eval '[ "$(tr "\n" " " <out)" = "first second " ]'

timeout 60 "$TALLY" top --stdio --container "$service" -s comm -d 300ms -n 2 >out 2>err </dev/null
check "top shows its processes and no others" eval 'grep -q third out && ! grep -q "first\|second" out'

# A process that enters from outside, as by docker exec, has no events.
cat >until_done.sh <<'END'
>started
until [ -e done ]; do sleep 0.05; done
END
timeout 60 "$TALLY" stat --container "${id:0:8}" -e task-clock sh until_done.sh >out 2>err &
stat=$!
until [ -e started ]; do sleep 0.05; done
spin "docker-$id.scope" late
touch done
wait $stat
check "a process that enters later is mentioned" eval 'tr -s " \n" " " <err | grep -qF "1 process entered the container later"'

timeout 60 "$TALLY" stat --container no-such-container -e task-clock true >out 2>err
[ $? = 2 ] || [ $? = 1 ]
check "an unknown name fails and says what lists them" eval 'has "no container or service is named" && has "docker ps"'
mkdir "$mount/docker-$id.scope/$service" "$mount/docker-$id.scope/inner/$service" 2>/dev/null
timeout 60 "$TALLY" stat --container "$service" -e task-clock true >out 2>err
check "several that match are listed" eval 'has "3 containers or services match" && has "/docker-$id.scope/inner/$service"'
timeout 60 "$TALLY" stat --container "/$service" -e task-clock true >out 2>err
check "a whole path means one of them" has "(1 process)"
rmdir "$mount/docker-$id.scope/$service" "$mount/docker-$id.scope/inner/$service"
timeout 60 "$TALLY" record --container "${id:0:8}" -p 1 -o c.data true >out 2>err
check "-p and --container exclude each other" has "exclude each other"

end_programs
timeout 60 "$TALLY" stat --container "$service" -e task-clock true >out 2>err
[ $? -ne 0 ]
check "without processes it fails, and doesn't count the whole system" has "has no processes"

if have setpriv; then
	chmod 755 .
	cp -p "$TALLY" ./tally
	mkdir "$scratch/home" && chmod 777 "$scratch/home"
	$nobody sh works.sh &
	pids=$!
	echo $pids >"$mount/$service/cgroup.procs"
	timeout 60 $nobody ./tally stat --container "$service" -e task-clock:u sleep 0.2 >out 2>err
	check "an ordinary user may measure his own processes in it" has "(1 process)"
else
	skip "an ordinary user may measure his own processes in it" "needs setpriv"
fi
done_testing
