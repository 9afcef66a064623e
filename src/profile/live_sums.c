#include "profile/live_sums.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const double FADED = 1.0 / 16; /* of a sample: what is lighter is forgotten */

/* ---- samples --------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct tally_live_sum *sum)
{
	return tally_hash64((uint64_t)sum->tid << 32 | sum->function) ^ sum->event;
}

/* The sum of a thread and a function, made when it is new; NULL when memory is out. */
static struct tally_live_sum *sum_of(struct tally_live_sums *sums, const struct tally_live_sum *key)
{
	for (uint64_t hash = hash_of(key);; hash++) {
		bool added;
		uint64_t *slot = tally_map_put(&sums->index, hash, &added);
		if (!slot)
			return NULL;
		if (added) {
			*slot = sums->sums.count;
			return tally_vector_push(&sums->sums, *key) < 0 ? NULL : &sums->sums.items[*slot];
		}
		struct tally_live_sum *sum = &sums->sums.items[*slot];
		if (sum->tid == key->tid && sum->function == key->function && sum->event == key->event &&
		    sum->pid == key->pid)
			return sum;
	}
}

int tally_live_sums_add(struct tally_live_sums *sums, uint32_t event, const struct tally_record *record)
{
	const struct tally_sample *sample = &record->sample;
	struct tally_tasks *tasks = sums->names->tasks;
	bool kernel = (record->header.misc & TALLY_MISC_CPUMODE_MASK) == TALLY_MISC_KERNEL;
	struct tally_place place = tally_place_of(tasks, sample->pid, kernel, sample->ip);
	struct tally_live_sum key = { .event = event, .pid = sample->pid, .tid = sample->tid };
	char buffer[16];
	key.function = tally_names_function(sums->names, &place, NULL);
	key.comm = tally_strings_intern(&tasks->strings, tally_tasks_comm(tasks, sample->pid, sample->tid, buffer));
	struct tally_live_sum *sum = key.function == UINT32_MAX ? NULL : sum_of(sums, &key);
	if (!sum)
		return -ENOMEM;
	sum->comm = key.comm;
	sum->weight += (double)(sample->period ? sample->period : 1);
	sum->samples += 1;
	return 0;
}

int tally_live_sums_decay(struct tally_live_sums *sums, double factor)
{
	size_t kept = 0;
	for (size_t i = 0; i < sums->sums.count; i++) {
		struct tally_live_sum sum = sums->sums.items[i];
		sum.weight *= factor;
		sum.samples *= factor;
		if (sum.samples >= FADED)
			sums->sums.items[kept++] = sum;
	}
	sums->sums.count = kept;
	tally_map_release(&sums->index);
	sums->index = (struct tally_map){ 0 };
	for (size_t i = 0; i < kept; i++) {
		bool added = false;
		for (uint64_t hash = hash_of(&sums->sums.items[i]); !added; hash++) {
			uint64_t *slot = tally_map_put(&sums->index, hash, &added);
			if (!slot)
				return -ENOMEM;
			if (added)
				*slot = i;
		}
	}
	return 0;
}

/* ---- reports --------------------------------------------------------------------------------------------- */

/* An entry with what is lost where weights are whole numbers. */
struct part {
	struct tally_report_entry entry;
	double weight, samples;
};

static struct part part_of(const struct tally_live_sums *sums, const struct tally_live_sum *sum, const bool *by)
{
	const struct tally_function *function = &sums->names->functions.items[sum->function];
	struct part part = { .entry = { .function = sum->function }, .weight = sum->weight, .samples = sum->samples };
	uint32_t *key = part.entry.key;
	key[TALLY_SORT_COMM] = by[TALLY_SORT_COMM] ? sum->comm : 0;
	key[TALLY_SORT_PID] = by[TALLY_SORT_PID] ? sum->pid : 0;
	key[TALLY_SORT_TID] = by[TALLY_SORT_TID] ? sum->tid : 0;
	key[TALLY_SORT_OBJECT] = by[TALLY_SORT_OBJECT] ? function->object : 0;
	key[TALLY_SORT_SYMBOL] = by[TALLY_SORT_SYMBOL] ? function->name : 0;
	return part;
}

static int compare_keys(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	int order = 0;
	for (unsigned key = 0; !order && key < TALLY_SORT_KEYS; key++)
		order = (x->entry.key[key] > y->entry.key[key]) - (x->entry.key[key] < y->entry.key[key]);
	return order;
}

static int compare_weights(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	return x->weight == y->weight ? compare_keys(a, b) : x->weight < y->weight ? 1 : -1;
}

/* Equal ones become one; how many are left. */
static size_t merge(struct part *parts, size_t count)
{
	size_t kept = 0;
	qsort(parts, count, sizeof(*parts), compare_keys);
	for (size_t i = 0; i < count; i++) {
		if (kept && !compare_keys(&parts[kept - 1], &parts[i])) {
			parts[kept - 1].weight += parts[i].weight;
			parts[kept - 1].samples += parts[i].samples;
		} else {
			parts[kept++] = parts[i];
		}
	}
	return kept;
}

static int count_tasks(const struct tally_live_sums *sums, uint32_t event, struct tally_report *report)
{
	struct tally_map comms = { 0 }, threads = { 0 };
	int result = 0;
	for (size_t i = 0; !result && i < sums->sums.count; i++) {
		const struct tally_live_sum *sum = &sums->sums.items[i];
		if (sum->event == event &&
		    (!tally_map_put(&comms, sum->comm, NULL) || !tally_map_put(&threads, sum->tid, NULL)))
			result = -ENOMEM;
	}
	report->comms = comms.count;
	report->threads = threads.count;
	tally_map_release(&comms);
	tally_map_release(&threads);
	return result;
}

/* Those that weigh enough, into the report. */
static int keep_heaviest(struct part *parts, size_t count, const struct tally_report_options *options,
			 struct tally_report *report)
{
	double least = options->percent_min / 100 * (double)report->period;
	int result = 0;
	qsort(parts, count, sizeof(*parts), compare_weights);
	for (size_t i = 0; !result && i < count && parts[i].weight >= least; i++) {
		if (options->limit && i == options->limit)
			break;
		struct tally_report_entry *entry = &parts[i].entry;
		entry->self = entry->total = (uint64_t)parts[i].weight;
		entry->self_samples = entry->total_samples = (uint64_t)(parts[i].samples + 0.5);
		result = tally_vector_push(&report->entries, *entry);
	}
	report->hidden = count - report->entries.count;
	return result;
}

int tally_live_sums_report(const struct tally_live_sums *sums, const struct tally_report_options *options,
			   struct tally_report *report)
{
	struct part *parts = malloc((sums->sums.count + 1) * sizeof(*parts));
	double weight = 0, samples = 0;
	size_t count = 0;
	*report = (struct tally_report){ 0 };
	if (!parts)
		return -ENOMEM;
	for (size_t i = 0; i < sums->sums.count; i++) {
		if (sums->sums.items[i].event != options->event)
			continue;
		parts[count] = part_of(sums, &sums->sums.items[i], options->by);
		weight += parts[count].weight;
		samples += parts[count++].samples;
	}
	report->period = (uint64_t)weight;
	report->samples = (uint64_t)(samples + 0.5);
	int result = count_tasks(sums, options->event, report);
	if (!result)
		result = keep_heaviest(parts, merge(parts, count), options, report);
	free(parts);
	if (result < 0)
		tally_report_release(report);
	return result;
}

void tally_live_sums_release(struct tally_live_sums *sums)
{
	tally_vector_release(&sums->sums);
	tally_map_release(&sums->index);
}
