/* perf mode: `tally perf COMMAND …`, and tally started by the name perf.  Programs that read perf's
 * text find it here: the commands take perf's options, print what perf 6.1 prints, and read and write
 * perf.data.  A command whose outputs are tally's own anywhere else is in its file (stat.c), with a
 * second table of options; its text is in src/show/perf.  docs/compatibility.md lists what differs. */
#include "command/command.h"
#include "command/perf_mode.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *tally_perf_input(const char *given)
{
	struct stat there;
	if (given)
		return given;
	if (!fstat(STDIN_FILENO, &there) && S_ISFIFO(there.st_mode))
		return "-";
	return "perf.data";
}

static int version(const struct tally_command *command, int argc, char **argv)
{
	(void)command, (void)argc, (void)argv;
	printf("perf version %s (tally %s)\n", TALLY_PERF_VERSION, TALLY_VERSION);
	return TALLY_EXIT_OK;
}

/* perf's settings are those of its outputs; tally has none, so none is listed. */
static int config(const struct tally_command *command, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strchr(argv[i], '='))
			return tally_command_misuse(command,
						    "tally has no settings file, only options");
	return TALLY_EXIT_OK;
}

static int test(const struct tally_command *command, int argc, char **argv)
{
	char name[] = "doctor", option[] = "--self-test", *words[] = { name, option, NULL };
	(void)command, (void)argc, (void)argv;
	return tally_command_doctor.run(&tally_command_doctor, 2, words);
}

static const struct tally_option no_options[] = { TALLY_OPTIONS_END };

static const struct tally_command tally_perf_config = {
	.name = "perf config",
	.summary = "list settings: there are none",
	.usage = "[-l]",
	.options = no_options,
	.rarely_reads_files = true,
	.run = config,
};

static const struct tally_command tally_perf_test = {
	.name = "perf test",
	.summary = "measure work of a known size (tally doctor --self-test)",
	.usage = "",
	.options = no_options,
	.run = test,
};

static const struct tally_command tally_perf_version = {
	.name = "perf version",
	.summary = "print perf's version that the texts are those of, and tally's",
	.usage = "",
	.options = no_options,
	.rarely_reads_files = true,
	.run = version,
};

static const struct tally_command *const commands[] = {
	&tally_perf_buildid_list,
	&tally_perf_config,
	&tally_perf_data,
	&tally_perf_diff,
	&tally_perf_evlist,
	&tally_perf_inject,
	&tally_perf_kallsyms,
	&tally_perf_list,
	&tally_perf_record,
	&tally_perf_report,
	&tally_perf_script,
	&tally_perf_stat,
	&tally_perf_test,
	&tally_perf_version,
};

/* Returns the command of perf mode with this name, without "perf "; NULL: there is none. */
static const struct tally_command *find(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i]->name + strlen("perf "), name))
			return commands[i];
	return NULL;
}

static void print_commands(void)
{
	printf("\n usage: perf [--version] [--help] COMMAND [ARGS]\n\n"
	       " These commands print what perf %s prints:\n",
	       TALLY_PERF_VERSION);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		printf("   %-15s %s\n", commands[i]->name + strlen("perf "), commands[i]->summary);
	printf("\n See 'perf COMMAND --help' for more information on a specific command.\n\n");
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "help";
	(void)command;
	if (!strcmp(name, "--version") || !strcmp(name, "-v"))
		name = "version";
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		print_commands();
		return argc > 1 ? TALLY_EXIT_OK : TALLY_EXIT_FAILURE;
	}
	const struct tally_command *found = find(name);
	if (found)
		return found->run(found, argc - 1, argv + 1);
	const char *instead = tally_command_instead(name);
	if (instead) {
		fprintf(stderr, "perf: tally, which is in perf's place, has no '%s'\n", name);
		tally_say("hint: %s", instead);
	} else { /* perf's words, which scripts look for */
		fprintf(stderr, "perf: '%s' is not a perf-command. See 'perf --help'.\n", name);
	}
	return TALLY_EXIT_FAILURE;
}

const struct tally_command tally_command_perf = {
	.name = "perf",
	.summary = "print perf's own text, for programs that read it",
	.usage = "command [options] [argument…]",
	.options = no_options,
	.details =
		"Scripts and programs that were made for perf find its texts, options and files "
		"here.  A link of the\n"
		"name perf to tally does the same for programs that start perf: 'make "
		"install-perf-link' makes it.\n\n"
		"  tally perf stat -x, -e task-clock ./program\n"
		"  tally perf record -g ./program\n"
		"  tally perf report --stdio\n"
		"  tally perf script | stackcollapse-perf.pl | flamegraph.pl >program.svg\n"
		"  tally perf script -s syscall-counts",
	.run = run,
};
