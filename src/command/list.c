/* tally list: the events that -e accepts here. */
#include "base/suggest.h"
#include "base/terminal.h"
#include "base/vector.h"
#include "command/list_command.h"
#include "command/perf_mode.h"
#include "command/simulated_options.h"
#include "machine/machine.h"
#include "output/output.h"
#include "perf/perf.h"
#include "provider/provider.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct listing {
	const char **words;
	size_t word_count;
	bool kinds[TALLY_EVENT_KINDS]; /* all false: every kind */
	bool any_kind, json, verbose;
	bool is_perf; /* `perf list`: perf's text */
	struct tally_perf_list perf;
	bool lists_metrics;
	struct metric_sources metric_sources;
	const char *provider_name;
	const struct tally_provider_ops *provider;
	bool is_of_machine; /* the provider's events are this machine's */
	struct tally_catalogue catalogue;
	struct {
		struct tally_listed_event *items;
		size_t count, capacity;
	} events;
	struct tally_error no_tracepoints; /* why there are none */
	char nearest[160]; /* nearest to the first word while nothing matches */
	unsigned distance;
};

static const struct tally_option options[] = {
	{ 'j', "json", TALLY_ARGUMENT_NONE, NULL, "JSON (docs/list.md)",
	  TALLY_SET(struct listing, json) },
	{ 'v', "verbose", TALLY_ARGUMENT_NONE, NULL,
	  "tracepoints with their fields, metrics with their\nexpressions",
	  TALLY_SET(struct listing, verbose) },
	METRIC_SOURCE_OPTIONS(struct listing, metric_sources),
	TALLY_PROVIDER_OPTION(struct listing, provider_name),
	TALLY_OPTIONS_END,
};

static const struct tally_option perf_options[] = {
	{ 0, "raw-dump", TALLY_ARGUMENT_NONE, NULL, "print names alone, in one line",
	  TALLY_SET(struct listing, perf.names_only) },
	/* texts beside the names, which these events lack */
	{ 'd', "desc", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	{ 0, "no-desc", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	{ 'v', "long-desc", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	{ 0, "details", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	{ 0, "debug", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	{ 0, "deprecated", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	TALLY_OPTIONS_END,
};

static int kind_by_word(const char *word)
{
	static const struct { const char *word; enum tally_event_kind kind;
	} words[] = {
		{ "hw", TALLY_EVENT_HARDWARE },    { "hardware", TALLY_EVENT_HARDWARE },
		{ "sw", TALLY_EVENT_SOFTWARE },    { "software", TALLY_EVENT_SOFTWARE },
		{ "tool", TALLY_EVENT_TOOL },      { "cache", TALLY_EVENT_CACHE },
		{ "hwcache", TALLY_EVENT_CACHE },  { "pmu", TALLY_EVENT_PMU },
		{ "raw", TALLY_EVENT_RAW },        { "breakpoint", TALLY_EVENT_BREAKPOINT },
		{ "mem", TALLY_EVENT_BREAKPOINT }, { "pfm", TALLY_EVENT_VENDOR },
		{ "vendor", TALLY_EVENT_VENDOR },  { "tracepoint", TALLY_EVENT_TRACEPOINT },
		{ "tp", TALLY_EVENT_TRACEPOINT },
	};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i].word, word))
			return (int)words[i].kind;
	return -1;
}

static bool wants(const struct listing *listing, enum tally_event_kind kind)
{
	return !listing->any_kind || listing->kinds[kind];
}

static bool matches(const char *word, const char *name)
{
	if (!name)
		return false;
	if (strpbrk(word, "*?["))
		return !fnmatch(word, name, FNM_CASEFOLD);
	return strcasestr(name, word) != NULL;
}

/* perf's rules: a word without ':' is searched in a tracepoint's own name, not in its system's; no
 * word finds forms. */
static bool matches_as_perf(const char *word, const struct tally_listed_event *event)
{
	const char *colon = strchr(event->name, ':');
	bool is_tracepoint = event->kind == TALLY_EVENT_TRACEPOINT;
	if (event->is_form || (strchr(word, ':') && !is_tracepoint))
		return false;
	if (is_tracepoint && colon && !strchr(word, ':'))
		return matches(word, colon + 1);
	return matches(word, event->name) || matches(word, event->alias);
}

static bool is_wanted(const struct listing *listing, const struct tally_listed_event *event)
{
	if (!wants(listing, event->kind))
		return false;
	if (listing->is_perf && listing->word_count) {
		for (size_t i = 0; i < listing->word_count; i++)
			if (matches_as_perf(listing->words[i], event))
				return true;
		return false;
	}
	for (size_t i = 0; i < listing->word_count; i++)
		if (matches(listing->words[i], event->name) ||
		    matches(listing->words[i], event->alias))
			return true;
	return !listing->word_count;
}

static void note_nearest(struct listing *listing, const char *name)
{
	if (!name)
		return;
	unsigned distance = tally_edit_distance(listing->words[0], name);
	if (distance >= listing->distance)
		return;
	listing->distance = distance;
	snprintf(listing->nearest, sizeof(listing->nearest), "%s", name);
}

static int add(struct listing *listing, struct tally_listed_event event)
{
	if (is_wanted(listing, &event))
		return tally_vector_push(&listing->events, event);
	if (listing->word_count && !listing->events.count && wants(listing, event.kind)) {
		const char *colon = strchr(event.name, ':');
		note_nearest(listing, event.name);
		note_nearest(listing, event.alias);
		note_nearest(listing, colon ? colon + 1 : NULL);
	}
	return 0;
}

static int add_named(struct listing *listing, enum tally_event_kind kind)
{
	int code = 0;
	for (size_t i = 0; !code && i < listing->catalogue.named_count; i++) {
		const struct tally_named_event *named = &listing->catalogue.named[i];
		bool is_other = kind == TALLY_EVENT_CACHE || kind == TALLY_EVENT_SOFTWARE;
		if (!listing->is_of_machine && named->unavailable && is_other)
			continue;
		if (named->kind == kind)
			code = add(listing, (struct tally_listed_event){
						    .kind = kind,
						    .name = named->name,
						    .alias = named->alias,
						    .description = named->description,
						    .unavailable = named->unavailable });
	}
	return code;
}

/* Tries to open the event, parsed from its expression as a user's is. */
static const char *pmu_event_unavailable(struct listing *listing, const char *expression,
					 const struct tally_pmu *pmu)
{
	struct tally_event_list parsed = { 0 };
	struct tally_cpu_list cpus = { 0 };
	const char *reason = "tally can't parse its description in sysfs";
	if (!tally_event_parse(expression, &listing->catalogue, &listing->catalogue.arena, &parsed,
			       NULL)) {
		if (!listing->is_of_machine)
			return tally_event_list_release(&parsed), NULL;
		tally_cpu_list_parse(pmu->cpus, &cpus, NULL);
		int cpu = cpus.count ? (int)cpus.cpus[0] : 0;
		int code = tally_kernel_probe_available(&parsed.items[0].attr, cpu);
		reason = NULL;
		if (code < 0)
			reason = tally_kernel_unavailable_text(&parsed.items[0].attr, code);
		tally_cpu_list_release(&cpus);
	} else if (strstr(expression, "?")) {
		reason = NULL;
	}
	tally_event_list_release(&parsed);
	return reason;
}

static const char *description_of(struct listing *listing, const char *expression)
{
	struct tally_event_list parsed = { 0 };
	struct tally_arena *arena = &listing->catalogue.arena;
	const char *text = NULL;
	if (!tally_event_parse(expression, &listing->catalogue, arena, &parsed, NULL))
		text = listing->provider->describe(&parsed.items[0].attr, arena);
	tally_event_list_release(&parsed);
	return text;
}

static int add_pmu(struct listing *listing, const struct tally_pmu *pmu)
{
	struct tally_arena *arena = &listing->catalogue.arena;
	int code = 0;
	for (size_t i = 0; !code && i < pmu->event_count; i++) {
		struct tally_listed_event event = {
			.kind = TALLY_EVENT_PMU,
			.parent = pmu->name,
			.pmu = pmu,
			.pmu_event = &pmu->events[i],
			.name = tally_arena_printf(arena, "%s/%s/", pmu->name, pmu->events[i].name),
		};
		if (!event.name)
			return -ENOMEM;
		if (listing->provider->describe)
			event.description = description_of(listing, event.name);
		event.is_form = strchr(pmu->events[i].terms, '?') != NULL;
		if (!event.is_form && is_wanted(listing, &event))
			event.unavailable = pmu_event_unavailable(listing, event.name, pmu);
		code = add(listing, event);
	}
	/* The PMUs "software", "tracepoint" and "breakpoint" repeat what other sections list. */
	if (code || (pmu->type < TALLY_TYPE_MAX && !pmu->term_count))
		return code;
	const char *name = tally_arena_printf(arena, "%s/%s=VALUE%s/", pmu->name,
					      pmu->term_count ? pmu->terms[0].name : "config",
					      pmu->term_count > 1 ? ",..." : "");
	if (!name)
		return -ENOMEM;
	return add(listing, (struct tally_listed_event){ .kind = TALLY_EVENT_PMU,
							 .name = name,
							 .pmu = pmu,
							 .parent = pmu->name,
							 .is_form = true });
}

/* Adds rNNN or mem:…, which stand for many events. */
static int add_form(struct listing *listing, enum tally_event_kind kind, const char *name,
		    const char *description, const struct tally_attr *sample)
{
	int code = tally_kernel_probe_available(sample, -1);
	/* `sample` may not exist itself; only errors that concern the whole kind count. */
	bool missing = code == -ENOENT || code == -EOPNOTSUPP || code == -EACCES ||
		       code == -EPERM || code == -ENOSYS;
	return add(listing, (struct tally_listed_event){
		.kind = kind, .name = name, .description = description, .is_form = true,
		.unavailable = missing ? tally_kernel_unavailable_text(sample, code) : NULL });
}

static int add_tracepoints(struct listing *listing)
{
	int code = 0;
	for (size_t i = 0; !code && i < listing->catalogue.tracepoint_count; i++) {
		const struct tally_tracepoint_name *t = &listing->catalogue.tracepoints[i];
		const char *name = tally_arena_printf(&listing->catalogue.arena, "%s:%s", t->system,
						      t->name);
		if (!name)
			return -ENOMEM;
		code = add(listing, (struct tally_listed_event){ .kind = TALLY_EVENT_TRACEPOINT,
								 .name = name,
								 .parent = t->system });
	}
	return code;
}

/* Adds libpfm's events; without libpfm, an error only if they were requested by kind. */
static int add_vendor_events(struct listing *listing, struct tally_error *err)
{
	struct tally_vendor_name *names;
	size_t count;
	if (!wants(listing, TALLY_EVENT_VENDOR))
		return 0;
	if (!listing->any_kind && !listing->word_count) /* thousands: listed only on request */
		return add(
			listing,
			(struct tally_listed_event){
				.kind = TALLY_EVENT_VENDOR,
				.name = "NAME[:MASK]",
				.is_form = true,
				.description =
					"the CPU vendor's names, by libpfm4: 'tally list pfm' "
					"lists them" });
	int code = tally_vendor_events(&listing->catalogue.arena, &names, &count, err);
	if (code < 0)
		return listing->any_kind ? code : 0;
	for (size_t i = 0; !code && i < count; i++)
		code = add(listing,
			   (struct tally_listed_event){ .kind = TALLY_EVENT_VENDOR,
							.name = names[i].name,
							.parent = names[i].pmu,
							.description = names[i].description });
	if (code < 0)
		return tally_error_set(err, code, "out of memory");
	return 0;
}

static int add_fields(struct listing *listing)
{
	struct tally_buffer format = { 0 };
	int tracefs = -1, code = 0;
	for (size_t i = 0; !code && i < listing->events.count; i++) {
		struct tally_listed_event *event = &listing->events.items[i];
		if (event->kind != TALLY_EVENT_TRACEPOINT)
			continue;
		if (tracefs < 0 && (tracefs = tally_tracefs_open(NULL)) < 0)
			break;
		tally_buffer_clear(&format);
		if (!tally_tracefs_format(tracefs, event->parent, strchr(event->name, ':') + 1,
					  &format))
			code = tally_event_list_fields(tally_buffer_string(&format),
						       &listing->catalogue.arena, event);
	}
	if (tracefs >= 0)
		close(tracefs);
	tally_buffer_release(&format);
	return code;
}

/* Loads only what the requested kinds need; names alone take only a directory walk. */
static int load(struct listing *listing, struct tally_error *err)
{
	struct tally_catalogue *catalogue = &listing->catalogue;
	int code = listing->provider->catalogue(NULL, catalogue, err);
	if (code || !listing->is_of_machine)
		return code;
	if (wants(listing, TALLY_EVENT_PMU))
		code = catalogue->load_pmus(catalogue, catalogue->context, NULL, err);
	if (code)
		return code;
	if (wants(listing, TALLY_EVENT_TRACEPOINT))
		catalogue->load_tracepoints(catalogue, catalogue->context,
					    &listing->no_tracepoints);
	if (wants(listing, TALLY_EVENT_HARDWARE) || wants(listing, TALLY_EVENT_SOFTWARE) ||
	    wants(listing, TALLY_EVENT_CACHE))
		tally_kernel_probe_named(catalogue);
	return 0;
}

static int collect(struct listing *listing, struct tally_error *err)
{
	const struct tally_attr raw = { .type = TALLY_TYPE_RAW };
	const struct tally_attr breakpoint = { .type = TALLY_TYPE_BREAKPOINT,
					       .bp_type = TALLY_BREAKPOINT_W,
					       .config1 = (uintptr_t)listing & ~(uintptr_t)7,
					       .config2 = 4 };
	int code = load(listing, err);
	if (code)
		return code;
	code = add_named(listing, TALLY_EVENT_HARDWARE);
	if (code)
		goto out;
	code = add_named(listing, TALLY_EVENT_SOFTWARE);
	if (!code && listing->is_of_machine)
		code = add_named(listing, TALLY_EVENT_TOOL);
	if (code)
		goto out;
	code = add_named(listing, TALLY_EVENT_CACHE);
	for (size_t i = 0;
	     !code && wants(listing, TALLY_EVENT_PMU) && i < listing->catalogue.pmu_count; i++)
		code = add_pmu(listing, &listing->catalogue.pmus[i]);
	if (code || !listing->is_of_machine)
		goto out;
	if (wants(listing, TALLY_EVENT_RAW))
		code = add_form(listing, TALLY_EVENT_RAW, "rNNN",
				"the CPU's event NNN (hexadecimal, as in its manual: r1a8)", &raw);
	if (code)
		goto out;
	if (wants(listing, TALLY_EVENT_BREAKPOINT))
		code = add_form(listing, TALLY_EVENT_BREAKPOINT, "mem:addr[/len][:rwx]",
				"accesses to len (1, 2, 4, 8) bytes at addr: mem:0x404040/8:w",
				&breakpoint);
	if (code)
		goto out;
	code = add_tracepoints(listing);
	if (!code && listing->verbose)
		code = add_fields(listing);
out:
	if (code)
		return tally_error_set(err, code, "out of memory");
	if (!listing->is_of_machine)
		return 0;
	return add_vendor_events(listing, err);
}

static int nothing(const struct tally_command *command, const struct listing *listing)
{
	const struct tally_error *missing = NULL;
	struct tally_error err;
	if (listing->no_tracepoints.code)
		missing = &listing->no_tracepoints;
	if (!listing->word_count && missing)
		return tally_command_fail(command, missing);
	if (!listing->word_count) {
		tally_error_set(&err, -ENOENT, "this machine has no such events");
		return tally_command_fail(command, &err);
	}
	tally_error_set(&err, -ENOENT, "no event matches '%.200s'%s", listing->words[0],
			listing->word_count > 1 ? " or the other words" : "");
	if (listing->nearest[0] && listing->distance <= 2 + strlen(listing->words[0]) / 6)
		tally_error_hint(&err, "did you mean '%s'?", listing->nearest);
	else if (!strcmp(listing->words[0], "sdt"))
		tally_error_hint(&err, "perf probe makes tracepoints of programs' SDT markers; then "
				       "'tally list tracepoint' lists them");
	else if (missing)
		tally_error_hint(&err, "tracepoints were not searched: %.400s", missing->message);
	else
		tally_error_hint(
			&err,
			"words match anywhere in a name, or as globs: 'tally list "
			"sys_enter_*open*'");
	return tally_command_fail(command, &err);
}

/* Warns when tracepoints are missing, so that the list does not look complete. On a terminal and in
 * JSON the list itself says so. */
static void note_missing(const struct tally_command *command, const struct listing *listing,
			 bool terminal)
{
	if (!listing->no_tracepoints.code || listing->word_count)
		return;
	if (!terminal && !listing->json)
		tally_say("tally %s: tracepoints are missing: %s", command->name,
			  listing->no_tracepoints.message);
	if (!listing->json && listing->no_tracepoints.hint[0])
		tally_say("hint: %s", listing->no_tracepoints.hint);
}

/* The kernel's events are marked as missing where it refuses them, though commands have others. */
static void note_refusal(const struct listing *listing)
{
	const struct tally_provider_ops *other = tally_provider_substitute(TALLY_PROVIDER_CATALOGUE);
	if (other && !listing->provider_name && !listing->json && tally_probe_refusal())
		tally_say("hint: commands are measured without the kernel's: tally list --provider %s",
			  other->name);
}

static int print(const struct tally_command *command, struct listing *listing)
{
	struct tally_buffer text = { 0 };
	bool terminal = isatty(STDOUT_FILENO);
	struct tally_event_listing found = {
		.events = listing->events.items,
		.count = listing->events.count,
	};
	if (wants(listing, TALLY_EVENT_TRACEPOINT) && listing->is_of_machine)
		found.tracepoints_unavailable = listing->catalogue.tracepoints_unavailable;
	struct tally_event_list_style style = {
		.terminal = terminal, .colours = tally_terminal_colours(STDOUT_FILENO),
		.summary = !listing->any_kind && !listing->word_count && !listing->verbose,
		.columns = tally_terminal_columns(STDOUT_FILENO, 80),
	};
	if (listing->json)
		tally_event_list_json(&found, &text);
	else if (listing->is_perf)
		tally_perf_list_text(&found, &listing->perf, &text);
	else
		tally_event_list_text(&found, &style, &text);
	int status = TALLY_EXIT_OK;
	if (text.failed) {
		struct tally_error err;
		tally_error_set(&err, -ENOMEM, "out of memory");
		status = tally_command_fail(command, &err);
	} else {
		fwrite(text.bytes, 1, text.length, stdout);
		/* after a failure main() reports errno */
		if (!fflush(stdout) && !ferror(stdout)) {
			note_missing(command, listing, terminal);
			if (!listing->is_perf)
				note_refusal(listing);
		}
	}
	tally_buffer_release(&text);
	return status;
}

static bool is_word_for_metrics(const char *word)
{
	return !strcmp(word, "metrics") || !strcmp(word, "metric") || !strcmp(word, "metricgroup");
}

/* perf has fewer words for kinds; "sw" is also for the tools' events, "sdt" for probes that tally
 * doesn't list. */
static void take_perfs_word(struct listing *listing, const char *word, int kind)
{
	bool is_kind = kind == TALLY_EVENT_HARDWARE || kind == TALLY_EVENT_SOFTWARE ||
		       kind == TALLY_EVENT_CACHE || kind == TALLY_EVENT_PMU ||
		       !strcmp(word, "tracepoint");
	if (!is_kind && strcmp(word, "sdt") != 0) {
		listing->words[listing->word_count++] = word;
		return;
	}
	listing->any_kind = true;
	if (is_kind)
		listing->kinds[kind] = true;
	if (kind == TALLY_EVENT_SOFTWARE)
		listing->kinds[TALLY_EVENT_TOOL] = true;
}

static void take_word(struct listing *listing, const char *word)
{
	bool is_first = !listing->word_count && !listing->any_kind;
	if (is_first && !listing->is_perf && !listing->lists_metrics && is_word_for_metrics(word)) {
		listing->lists_metrics = true;
		return;
	}
	if (listing->lists_metrics) {
		listing->words[listing->word_count++] = word;
		return;
	}
	int kind = listing->word_count ? -1 : kind_by_word(word);
	if (listing->is_perf) {
		take_perfs_word(listing, word, kind);
		return;
	}
	if (kind >= 0)
		listing->any_kind = listing->kinds[kind] = true;
	else
		listing->words[listing->word_count++] = word;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	const char *words[argc];
	struct listing listing = { .words = words, .distance = UINT32_MAX,
				   .is_perf = command == &tally_perf_list };
	while (tally_options_parse(&walk, &listing) && walk.index < argc)
		take_word(&listing, argv[walk.index++]); /* options may follow words */
	if (walk.status >= 0)
		return walk.status;
	listing.provider = tally_provider_find(listing.provider_name, TALLY_PROVIDER_CATALOGUE);
	if (!listing.provider) {
		tally_provider_unknown(listing.provider_name, &err);
		return tally_command_misuse(command, "%s", err.message);
	}
	listing.is_of_machine = listing.provider->capabilities & TALLY_PROVIDER_THIS_MACHINE;
	int status;
	if (listing.lists_metrics) {
		const struct list_metrics_request request = { listing.metric_sources, words,
							      listing.word_count, listing.json,
							      listing.verbose };
		status = list_metrics(command, &request, listing.provider, &listing.catalogue);
		tally_catalogue_release(&listing.catalogue);
		return status;
	}
	if (listing.metric_sources.file || listing.metric_sources.folder)
		return tally_command_misuse(command, "--metrics-file and --metrics-dir belong to "
						     "'tally list metrics'");
	if (collect(&listing, &err) < 0)
		status = tally_command_fail(command, &err);
	else if (!listing.events.count && !listing.is_perf)
		status = nothing(command, &listing);
	else
		status = print(command, &listing);
	tally_vector_release(&listing.events);
	tally_catalogue_release(&listing.catalogue);
	return status;
}

const struct tally_command tally_command_list = {
	.name = "list",
	.summary = "the events that can be counted, sampled and traced here",
	.usage = "[options] [hw|sw|cache|pmu|raw|breakpoint|tracepoint|pfm|metrics]… [WORD…]",
	.details =
		"Words match anywhere in a name, or as globs; an event that matches one of them is "
		"listed.  Events that\n"
		"this machine can't count are marked; a shared reason is given once.  In a pipe "
		"each event has one\n"
		"line, which begins with its name for -e.\n\n"
		"Exit status: 0, or 1 if nothing matches.\n\n"
		"  tally list\n"
		"  tally list cache dTLB\n"
		"  tally list pfm l3_miss\n"
		"  tally list --provider simulated\n"
		"  tally list -v metrics topdown\n"
		"  tally list -v sched:sched_switch\n"
		"  tally list '*:sys_enter_open*' | awk '{ print $1 }'\n"
		"  tally list -j hw | jq '.events[] | select(.unavailable | not).name'",
	.options = options,
	.rarely_reads_files = true,
	.run = run,
};

const struct tally_command tally_perf_list = {
	.name = "perf list",
	.summary = "print the events that this machine has",
	.usage = "[options] [hw|sw|cache|tracepoint|pmu|tool] [WORD…]",
	.options = perf_options,
	.rarely_reads_files = true,
	.run = run,
};
