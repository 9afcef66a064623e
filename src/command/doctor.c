/* The command `doctor`: gathers facts about this machine, makes findings of them, and prints these.
 * The finding about `stat` decides the exit status. */
#include "base/terminal.h"
#include "command/command.h"
#include "command/self_test.h"
#include "output/output.h"
#include "provider/simulated.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct request {
	bool json, self_test;
	const char *work; /* of the self-test: this process is the measured one */
};

static const struct tally_option options[] = {
	{ 'j', "json", TALLY_ARGUMENT_NONE, NULL, "JSON (docs/doctor.md)",
	  TALLY_SET(struct request, json) },
	{ 0, "self-test", TALLY_ARGUMENT_NONE, NULL,
	  "test what works: count, sample and draw work of a known size",
	  TALLY_SET(struct request, self_test) },
	{ 0, "work", TALLY_ARGUMENT_REQUIRED, "WORK", NULL, TALLY_TEXT(struct request, work) },
	TALLY_OPTIONS_END,
};

static int print_report(const struct tally_command *command,
			const struct tally_machine_facts *facts, bool json)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_buffer text = { 0 };
	struct tally_doctor_style style = {
		.utf8 = tally_terminal_is_utf8(),
		.colours = tally_terminal_colours(STDOUT_FILENO),
	};
	struct tally_findings *findings = calloc(1, sizeof(*findings));
	bool works = false;
	if (findings) {
		tally_findings_make(facts, findings);
		if (json)
			tally_doctor_json(facts, findings, &text);
		else
			tally_doctor_text(facts, findings, &style, &text);
		const struct tally_finding *stat = tally_findings_find(findings, "stat");
		works = stat && stat->state != TALLY_FINDING_MISSING;
	}
	if (!findings || text.failed) {
		tally_error_set(&err, -ENOMEM, "out of memory");
		tally_command_fail(command, &err);
	} else {
		fwrite(text.bytes, 1, text.length, stdout);
	}
	tally_buffer_release(&text);
	free(findings);
	if (!works || err.code)
		return TALLY_EXIT_FAILURE;
	return TALLY_EXIT_OK;
}

static int test_claims(const struct tally_command *command, const struct tally_machine_facts *facts,
		       bool json)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_buffer text = { 0 };
	struct tally_findings *findings = calloc(1, sizeof(*findings));
	int failures = -ENOMEM;
	if (findings) {
		tally_findings_make(facts, findings);
		failures = self_test_run(findings, json, tally_terminal_is_utf8(),
					 tally_terminal_colours(STDOUT_FILENO), &text, &err);
	}
	free(findings);
	if (failures < 0)
		tally_command_fail(command, &err);
	else
		fwrite(text.bytes, 1, text.length, stdout);
	tally_buffer_release(&text);
	if (failures)
		return TALLY_EXIT_FAILURE;
	return TALLY_EXIT_OK;
}

/* Returns why commands can't be measured without perf events; "": they can; NULL: this tally has no
 * provider for that. */
static const char *lack_of_process(void)
{
	const struct tally_provider_ops *ops = tally_provider_find("process", 0);
	if (ops && ops->lack)
		return ops->lack();
	if (ops)
		return "";
	return NULL;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_machine_facts facts;
	struct request request = { 0 };
	if (!tally_options_parse(&walk, &request))
		return walk.status;
	if (walk.index < argc)
		return tally_command_misuse(command, "unexpected argument '%s'",
					    argv[walk.index]);
	if (request.work)
		return self_test_work(request.work);
	tally_machine_facts_read(&facts);
	facts.simulated = tally_simulated_lack();
	facts.process = lack_of_process();
	if (request.self_test)
		return test_claims(command, &facts, request.json);
	return print_report(command, &facts, request.json);
}

const struct tally_command tally_command_doctor = {
	.name = "doctor",
	.summary = "show what can be measured here, and how to fix the rest",
	.usage = "[options]",
	.details =
		"Everything is tested, not guessed from settings: whether perf_event_open reaches "
		"the kernel,\n"
		"which events open, whether overflows arrive.  This takes less than a tenth of a "
		"second\n"
		"and changes nothing.\n\n"
		"--self-test measures work whose counts and shares are known, in the way of a user, "
		"and compares.\n"
		"It takes some seconds; what doctor calls missing is skipped.\n\n"
		"Exit status: 0 if at least your own programs can be counted, otherwise 1.  With "
		"--self-test: 0 if\n"
		"all holds that doctor says, otherwise 1.\n\n"
		"  tally doctor\n"
		"  tally doctor --self-test\n"
		"  tally doctor --json | jq '.findings[] | select(.state != \"ok\")'",
	.options = options,
	.rarely_reads_files = true,
	.run = run,
};
