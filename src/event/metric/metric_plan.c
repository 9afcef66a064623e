/* From a definition to a plan: the metrics in a metric are found, in the order in which they can be
 * computed, and the events of all of them.
 *
 * The walk is depth first.  Metrics on the path from the first one are `open`: to meet one again is
 * a cycle.  Metrics that are done have a step, which is used again. */
#include "metric/metric.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* A metric on the way, or done. */
struct visit {
	size_t definition, step;
	bool is_open;
};

struct planner {
	struct tally_metric_set *set;
	struct tally_arena *arena;
	struct tally_metric_plan *plan;
	struct tally_error *err;
	unsigned depth;
	TALLY_VECTOR(struct visit) visits;
};

static int no_memory(struct planner *planner)
{
	return tally_error_set(planner->err, -ENOMEM, "out of memory");
}

static int add_event(struct planner *planner, const char *name, size_t *index)
{
	struct tally_metric_plan *plan = planner->plan;
	for (*index = 0; *index < plan->events.count; (*index)++)
		if (!strcmp(plan->events.items[*index], name))
			return 0;
	if (plan->events.count >= TALLY_METRIC_EVENTS_MAX)
		return tally_error_set(planner->err, -E2BIG,
				       "the metric '%.100s' needs more than %d events",
				       plan->definition->name, TALLY_METRIC_EVENTS_MAX);
	if (tally_vector_push(&plan->events, name) < 0)
		return no_memory(planner);
	return 0;
}

static int visit(struct planner *planner, size_t definition, size_t *step);

/* Returns what a name of `self`'s expression is: a step, or an event. */
static int find_operand(struct planner *planner, size_t self, const char *name, size_t *operand)
{
	size_t inner = tally_metric_set_find(planner->set, name, SIZE_MAX);
	/* A file's own metric may refine the built-in one of its name. */
	if (inner == self)
		inner = tally_metric_set_find(planner->set, name, inner);
	bool is_own = inner == SIZE_MAX &&
		      !strcmp(planner->set->definitions.items[self].name, name);
	if (is_own)
		return tally_error_set(planner->err, -ELOOP,
				       "the metric '%.100s' is defined by itself", name);
	if (inner == SIZE_MAX)
		return add_event(planner, name, operand);
	int result = visit(planner, inner, operand);
	*operand |= TALLY_METRIC_IS_STEP;
	return result;
}

static int add_step(struct planner *planner, size_t definition, size_t *step)
{
	const struct tally_metric_definition *d = &planner->set->definitions.items[definition];
	struct tally_metric_step made = { .scale = d->scale, .definition = definition };
	struct tally_error why = TALLY_ERROR_NONE;
	int result = tally_metric_parse(d->expression, planner->arena, &made.expression, &why);
	if (result == -ENOMEM)
		return no_memory(planner);
	if (result < 0)
		return tally_error_set(planner->err, result, "the metric '%.100s': %.300s", d->name,
				       why.message);
	size_t names = tally_metric_name_count(made.expression);
	made.operands = tally_arena_array(planner->arena, names + 1, sizeof(*made.operands));
	if (!made.operands)
		return no_memory(planner);
	for (size_t i = 0; i < names; i++) {
		result = find_operand(planner, definition, tally_metric_name(made.expression, i),
				      &made.operands[i]);
		if (result < 0)
			return result;
	}
	*step = planner->plan->steps.count;
	if (*step >= TALLY_METRIC_STEPS_MAX)
		return tally_error_set(planner->err, -E2BIG,
				       "the metric '%.100s' has too many metrics in it",
				       planner->plan->definition->name);
	if (tally_vector_push(&planner->plan->steps, made) < 0)
		return no_memory(planner);
	return 0;
}

static int visit(struct planner *planner, size_t definition, size_t *step)
{
	const char *name = planner->set->definitions.items[definition].name;
	for (size_t i = 0; i < planner->visits.count; i++) {
		if (planner->visits.items[i].definition != definition)
			continue;
		*step = planner->visits.items[i].step;
		if (planner->visits.items[i].is_open)
			return tally_error_set(planner->err, -ELOOP,
					       "the metric '%.100s' is defined by itself, through "
					       "other metrics",
					       name);
		return 0;
	}
	if (planner->depth >= TALLY_METRIC_DEPTH_MAX)
		return tally_error_set(planner->err, -E2BIG,
				       "the metric '%.100s' is nested too deeply in others", name);
	size_t at = planner->visits.count;
	if (tally_vector_push(&planner->visits,
			      (struct visit){ .definition = definition, .is_open = true }) < 0)
		return no_memory(planner);
	planner->depth++;
	int result = add_step(planner, definition, step);
	planner->depth--;
	planner->visits.items[at].is_open = false;
	planner->visits.items[at].step = *step;
	return result;
}

int tally_metric_plan_make(struct tally_metric_set *set, size_t definition,
			   struct tally_arena *arena, struct tally_metric_plan *plan,
			   struct tally_error *err)
{
	*plan = (struct tally_metric_plan){ .definition = &set->definitions.items[definition] };
	struct planner planner = { .set = set, .arena = arena, .plan = plan, .err = err };
	size_t step = 0;
	int result = visit(&planner, definition, &step);
	tally_vector_release(&planner.visits);
	return result;
}

void tally_metric_plan_release(struct tally_metric_plan *plan)
{
	tally_vector_release(&plan->steps);
	tally_vector_release(&plan->events);
}

bool tally_metric_plan_pass_over(struct tally_metric_set *set, const struct tally_metric_plan *plan,
				 size_t event)
{
	for (size_t i = 0; i < plan->steps.count; i++) {
		const struct tally_metric_step *step = &plan->steps.items[i];
		struct tally_metric_definition *d = &set->definitions.items[step->definition];
		size_t names = tally_metric_name_count(step->expression);
		for (size_t name = 0; name < names; name++)
			if (step->operands[name] == event &&
			    tally_metric_set_find(set, d->name, step->definition) != SIZE_MAX) {
				d->is_passed_over = true;
				return true;
			}
	}
	return false;
}

double tally_metric_plan_evaluate(const struct tally_metric_plan *plan,
				  const struct tally_metric_name_value *values,
				  const struct tally_metric_machine *machine)
{
	double done[TALLY_METRIC_STEPS_MAX];
	/* an expression has no more names than nodes */
	struct tally_metric_name_value operands[TALLY_METRIC_NODES_MAX];
	for (size_t i = 0; i < plan->steps.count; i++) {
		const struct tally_metric_step *step = &plan->steps.items[i];
		size_t names = tally_metric_name_count(step->expression);
		for (size_t name = 0; name < names; name++) {
			size_t operand = step->operands[name];
			if (operand & TALLY_METRIC_IS_STEP)
				operands[name] = (struct tally_metric_name_value){
					done[operand & ~TALLY_METRIC_IS_STEP], 1
				};
			else
				operands[name] = values[operand];
		}
		done[i] = tally_metric_evaluate(step->expression, operands, machine);
	}
	if (!plan->steps.count)
		return NAN;
	double value = done[plan->steps.count - 1] * plan->steps.items[plan->steps.count - 1].scale;
	if (isinf(value))
		return NAN;
	return value;
}
