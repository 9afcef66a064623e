/* Metrics: for any text, an expression has a finite value or none, and a user's file gives metrics
 * that can be planned, or an error.  The first byte says which of the readers gets the rest. */
#include "fuzz.h"

#include "metric/metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct tally_metric_machine machine = { .cpus = 4,
						     .cpus_online = 4,
						     .cores = 2,
						     .dies = 1,
						     .packages = 1,
						     .smt_on = 1,
						     .tsc_hz = NAN,
						     .slots = 0,
						     .cpuid = "GenuineIntel-6-8E-A" };

static void try_expression(const char *text)
{
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_error err = TALLY_ERROR_NONE;
	const struct tally_metric_expression *expression;
	static struct tally_metric_name_value values[TALLY_METRIC_NODES_MAX];
	int code = tally_metric_parse(text, &arena, &expression, &err);
	if (code < 0 && (expression || !err.message[0] || err.position < 0 ||
			 (size_t)err.position > strlen(text)))
		abort();
	if (!code) {
		size_t count = tally_metric_name_count(expression);
		if (count > TALLY_METRIC_NODES_MAX)
			abort();
		for (size_t i = 0; i < count; i++)
			values[i] = (struct tally_metric_name_value){ i % 3 ? (double)i : NAN,
								      i % 3 };
		if (isinf(tally_metric_evaluate(expression, values, &machine)))
			abort();
	}
	tally_arena_release(&arena);
}

static void plan_all(struct tally_metric_set *set)
{
	static struct tally_metric_name_value values[TALLY_METRIC_EVENTS_MAX];
	size_t builtin;
	tally_metric_table(&builtin);
	for (size_t i = builtin; i < set->definitions.count && i < builtin + 64; i++) {
		struct tally_arena arena = TALLY_ARENA_INIT;
		struct tally_metric_plan plan;
		struct tally_error err = TALLY_ERROR_NONE;
		int code = tally_metric_plan_make(set, i, &arena, &plan, &err);
		if (code < 0 && !err.message[0])
			abort();
		if (plan.events.count > TALLY_METRIC_EVENTS_MAX)
			abort();
		if (!code && isinf(tally_metric_plan_evaluate(&plan, values, &machine)))
			abort();
		for (size_t event = 0; event < plan.events.count; event++)
			if (!tally_metric_set_event(set, plan.events.items[event]))
				abort();
		tally_metric_plan_release(&plan);
		tally_arena_release(&arena);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_metric_set set;
	struct tally_error err = TALLY_ERROR_NONE;
	char folder[64];
	if (!size)
		return 0;
	char *text = malloc(size);
	if (!text)
		abort();
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	if (data[0] == 'E') {
		try_expression(text);
	} else if (data[0] == 'M') {
		tally_metric_map_find(text, size - 1, "GenuineIntel-6-8E-A", folder,
				      sizeof(folder));
	} else {
		if (tally_metric_set_init(&set, "") < 0)
			abort();
		int code;
		if (data[0] == 'J')
			code = tally_metric_set_add_json(&set, "/x/arm64/y.json", text, size - 1,
							 &err);
		else
			code = tally_metric_set_add_file(&set, "file", text, size - 1, &err);
		if (code < 0 && !err.message[0])
			abort();
		plan_all(&set);
		tally_metric_set_release(&set);
	}
	free(text);
	return 0;
}
