/* The table of subcommands, in the order of `tally help`. */
#include "command/command.h"

#include "base/suggest.h"

#include <stdio.h>
#include <string.h>

#define COMMANDS(X) \
	X(stat) \
	X(compare) \
	X(record) \
	X(report) \
	X(diff) \
	X(annotate) \
	X(top) \
	X(script) \
	X(list) \
	X(doctor) \
	X(fold) \
	X(flamegraph) \
	X(timeline) \
	X(export) \
	X(pack) \
	X(run) \
	X(perf) \
	X(sim) \
	X(cache) \
	X(completion) \
	X(help)

#define DECLARE(name) extern const struct tally_command tally_command_##name;
COMMANDS(DECLARE)
#define LIST(name) &tally_command_##name,
const struct tally_command *const tally_commands[] = { COMMANDS(LIST) NULL };

/* Commands that perf has and tally lacks, with alternatives. */
static const struct {
	const char *name, *instead;
} OTHERS[] = {
	{ "archive", "'tally pack' puts the names into the recording" },
	{ "bench",
	  "perf bench measures the kernel; 'tally stat -r 5 -- COMMAND' measures a program, with "
	  "the spread" },
	{ "buildid-list",
	  "'tally perf buildid-list' lists those of a recording; readelf -n shows a file's" },
	{ "buildid-cache",
	  "recordings have the names and build-ids of what they sampled; --buildid-dir DIR uses "
	  "perf's cache" },
	{ "c2c",
	  "tally record -a -d -W -e cpu/mem-loads/P, then tally script -F +addr,+data_src: look "
	  "for HITM" },
	{ "config", "tally has no settings file, only options" },
	{ "data",
	  "'tally export' writes a recording for other programs, 'tally perf data convert "
	  "--to-json' as perf does" },
	{ "daemon", "a service of systemd can run tally record --switch-output" },
	{ "evlist",
	  "'tally perf evlist' or tally report --header-only shows the recorded events, 'tally "
	  "list' the available ones" },
	{ "ftrace",
	  "tally record -a -e GROUP:NAME records what ftrace traces, and tally script shows it" },
	{ "inject",
	  "not needed: tally report reads JITs' dumps, and each recording has its build-ids; 'tally "
	  "perf inject -b' copies it" },
	{ "kallsyms", "'tally perf kallsyms NAME' shows where the running kernel has a function" },
	{ "kmem",
	  "tally record -a -g -e 'kmem:*', then tally report shows who allocates; 'perf kmem -i "
	  "tally.data stat' reads the recording, too" },
	{ "kwork",
	  "tally record -a -e 'irq:*,workqueue:*', then tally timeline shows what ran when" },
	{ "kvm", "tally record -a -e 'kvm:*', then tally script shows each exit" },
	{ "lock",
	  "tally record -a -g -e 'lock:contention_*', then tally report shows who waits, tally "
	  "timeline when; 'perf lock contention -i tally.data' reads the recording, too" },
	{ "mem",
	  "tally record -d -W -e cpu/mem-loads/P -- COMMAND, then tally script -F "
	  "+addr,+weight,+data_src" },
	{ "probe",
	  "perf probe makes probes: tally record -e GROUP:NAME records them, and tally script "
	  "shows them" },
	{ "sched",
	  "tally record -a -e 'sched:*', then tally timeline shows what ran when, tally script "
	  "each event; 'perf sched latency -i tally.data' reads the recording, too" },
	{ "test", "'tally doctor' shows what works here" },
	{ "timechart",
	  "tally record -a -e 'sched:*', then tally timeline; 'perf timechart -i tally.data' reads "
	  "the recording, too" },
	{ "trace",
	  "tally record -e 'raw_syscalls:*' -- COMMAND, then tally script shows each system call; "
	  "'perf trace -i tally.data' reads the recording, too" },
};

const char *tally_command_instead(const char *name)
{
	for (size_t i = 0; i < sizeof(OTHERS) / sizeof(OTHERS[0]); i++)
		if (!strcmp(name, OTHERS[i].name))
			return OTHERS[i].instead;
	return NULL;
}

static void complain(const char *name)
{
	const char *instead = tally_command_instead(name);
	const char *nearest = NULL;
	unsigned best = 3;
	for (size_t i = 0; tally_commands[i]; i++) {
		unsigned distance = tally_edit_distance(name, tally_commands[i]->name);
		if (distance < best) {
			best = distance;
			nearest = tally_commands[i]->name;
		}
	}
	if (name[0] == '-') {
		tally_say("tally: there is no option %s before a command", name);
		fprintf(stderr, "hint: options follow the command, which 'tally help' lists: tally "
				"report --verbose\n");
		return;
	}
	tally_say("tally: there is no command '%s'", name);
	if (instead)
		tally_say("hint: %s", instead);
	else if (nearest)
		tally_say("hint: did you mean 'tally %s'?", nearest);
	else
		fprintf(stderr, "hint: 'tally help' lists them\n");
}

const struct tally_command *tally_command_find(const char *name)
{
	for (size_t i = 0; tally_commands[i]; i++)
		if (!strcmp(tally_commands[i]->name, name))
			return tally_commands[i];
	complain(name);
	return NULL;
}
