/* tally stat: counts events and explains them. */
#include "base/terminal.h"
#include "command/stat_command.h"

#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_provider(struct stat_command *stat, struct tally_error *err)
{
	static const char scripted[] = "scripted:";
	const char *name = stat->provider_name;
	if (!name || !strcmp(name, "kernel"))
		stat->provider = tally_provider_kernel();
	else if (simulated_is_meant(name))
		return tally_provider_simulated_new(&stat->simulated, &stat->provider, err);
	else if (!strncmp(name, scripted, sizeof(scripted) - 1))
		return tally_provider_scripted_new(name + sizeof(scripted) - 1, &stat->provider,
						   err);
	else {
		stat->is_misused = true;
		return tally_error_set(err, -EINVAL, "no provider '%s': use kernel or simulated",
				       name);
	}
	return 0;
}

static void write_report(void *context, const struct tally_stat_report *report)
{
	struct stat_command *stat = context;
	tally_buffer_clear(&stat->text);
	stat->ops->show(&stat->view, report);
	if (stat->text.failed) {
		stat->write_error = -ENOMEM;
	} else if (fwrite(stat->text.bytes, 1, stat->text.length, stat->output) !=
			   stat->text.length ||
		   fflush(stat->output)) {
		stat->write_error = errno ? -errno : -EIO;
		/* After a long run the counts must not be lost: print them to stderr. */
		if (stat->output != stderr)
			fwrite(stat->text.bytes, 1, stat->text.length, stderr);
	}
}

static void write_message(void *context, const char *text)
{
	char clean[512];
	(void)context;
	tally_terminal_clean(text, clean, sizeof(clean));
	fprintf(stderr, "%s\n", clean);
}

/* Counting the whole system without a command looks like a hang: says so. */
static void say_waiting(void *context)
{
	const struct stat_command *stat = context;
	const struct tally_target *target = &stat->target;
	bool is_all = (target->all && !target->has_cpu_list) || target->every_thread;
	/* Programs that parse -x or -j on stderr get nothing else there. */
	bool is_read = stat->output == stderr && stat->ops != &tally_stat_view_table &&
		       !isatty(STDERR_FILENO);
	if (is_all && !is_read && !target->command && !stat->options.timeout_ms &&
	    !stat->options.interval_ms)
		fputs("counting the whole system until Ctrl-C\n", stderr);
}

static int open_output(struct stat_command *stat, struct tally_error *err)
{
	stat->output = stderr;
	if (stat->output_path) {
		stat->output = fopen(stat->output_path, stat->appends ? "ae" : "we");
		if (!stat->output)
			return tally_error_set(err, -errno, "%s: %s", stat->output_path,
					       tally_errno_text(-errno));
	}
	stat->view.out = &stat->text;
	stat->view.is_ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	if (isatty(fileno(stat->output)))
		stat->view.columns = tally_terminal_columns(fileno(stat->output), 80);
	stat->view.clears &= tally_terminal_knows_escapes(fileno(stat->output));
	stat->view.has_colours = tally_terminal_colours(fileno(stat->output));
	return 0;
}

static int prepare(struct stat_command *stat, struct tally_error *err)
{
	bool is_simulated = simulated_is_meant(stat->provider_name);
	int result = is_simulated ? simulated_check_target(&stat->target, err) : 0;
	stat->is_misused = result < 0;
	if (result >= 0)
		result = open_provider(stat, err);
	if (result >= 0)
		result = tally_target_resolve(&stat->target, err);
	if (result >= 0)
		result = stat_parse_events(stat, err);
	if (result >= 0)
		result = stat_find_event_cpus(stat, err);
	if (result >= 0 && stat->control_spec) {
		result = tally_control_open(&stat->control, stat->control_spec, err);
		stat->is_misused = result == -EINVAL;
		stat->options.control = &stat->control;
	}
	if (result >= 0)
		result = open_output(stat, err);
	if (result < 0)
		return result;
	stat->options.counting.provider = stat->provider;
	stat->options.counting.events = stat->events.items;
	stat->options.counting.event_count = stat->events.count;
	stat->options.counting.target = &stat->target;
	stat->options.target = &stat->target;
	stat->options.on_start = say_waiting;
	stat->options.on_report = write_report;
	stat->options.on_message = write_message;
	stat->options.context = stat;
	return 0;
}

static int count(struct stat_command *stat)
{
	struct tally_error err = TALLY_ERROR_NONE;
	int status = TALLY_EXIT_FAILURE;
	int result = prepare(stat, &err);
	if (result >= 0)
		result = tally_stat_run(&stat->options, &status, &err);
	if (result < 0)
		tally_command_fail(stat->command, &err);
	if (stat->is_misused)
		status = TALLY_EXIT_USAGE;
	if (result >= 0 && stat->write_error) {
		tally_error_set(&err, stat->write_error, "writing the counts to %s failed: %s",
				stat->output_path ? stat->output_path : "stderr",
				tally_errno_text(stat->write_error));
		status = tally_command_fail(stat->command, &err);
	}
	return status;
}

/* A full disk leaves an empty file. */
static void drop_if_empty(const struct stat_command *stat)
{
	struct stat file;
	if (!stat->appends && !lstat(stat->output_path, &file) && S_ISREG(file.st_mode) &&
	    !file.st_size)
		unlink(stat->output_path);
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct stat_command stat = { .command = command,
				     .target = TALLY_TARGET_INIT,
				     .options = { .runs = 1 },
				     .control = TALLY_CONTROL_INIT,
				     .view = { .separator = "," },
				     .ops = &tally_stat_view_table };
	int status = stat_take_arguments(&stat, argc, argv);
	if (status < 0)
		status = count(&stat);
	if (stat.write_error && stat.output != stderr)
		drop_if_empty(&stat);
	if (stat.output && stat.output != stderr && fclose(stat.output) && !stat.write_error) {
		struct tally_error err = TALLY_ERROR_NONE;
		tally_error_set(&err, -errno, "%s: %s", stat.output_path, tally_errno_text(-errno));
		status = tally_command_fail(command, &err);
	}
	if (stat.provider)
		stat.provider->ops->release(stat.provider);
	if (stat.has_catalogue)
		tally_catalogue_release(&stat.catalogue);
	tally_event_list_release(&stat.events);
	tally_control_release(&stat.control);
	tally_target_release(&stat.target);
	tally_buffer_release(&stat.text);
	tally_arena_release(&stat.arena);
	return status;
}

const struct tally_command tally_command_stat = {
	.name = "stat",
	.summary = "count events while a command runs, and explain the counts",
	.usage = "[options] [--] [command [argument…]]",
	.options = stat_options,
	.details =
		"Without a command, -p or -t, the whole system is counted until Ctrl-C.  The counts go to standard\n"
		"error, so that the command's own output stays clean; the exit status is the command's (128 + n when\n"
		"signal n ended it, 127 when it was not found, 126 when it can't be executed).  A command that tally\n"
		"stops at --duration, --timeout or --interval-count gives 0; a wrong event gives 2.\n\n"
		"  tally stat -d ./program                  with cache and TLB misses\n"
		"  tally stat -r 10 -- make -s              mean and spread of ten runs\n"
		"  tally stat -e page-faults -I 1000 -p 42  a process, each second\n"
		"  tally stat -a --duration 5               the whole system for 5 seconds\n"
		"  tally stat -a --per-core -I 1000         each core, each second\n"
		"  tally stat --per-thread -p 42 sleep 5    each thread of a process\n"
		"  tally stat -e 'syscalls:*' --no-zero ls  the system calls of a command\n"
		"  tally stat -a -e cpu-clock -G user.slice -I 1000\n"
		"                                           what a cgroup uses\n"
		"  tally stat --provider simulated ./program\n"
		"                                           without hardware counters",
	.run = run,
};
