/* First come the functions that read a key's value from a sample and put it into words, then the
 * data that keys need, then the table, which sample_fields.h fills. */
#include "profile/profile.h"


#include "tally/perf_event.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE_LINE_BYTES = 64 };

/* ---- branches ------------------------------------------------------------ */

static uint64_t prediction(const struct tally_fact_source *source)
{
	return source->branch->flags & (TALLY_BRANCH_MISPREDICTED | TALLY_BRANCH_PREDICTED);
}

static void prediction_text(uint64_t flags, struct tally_buffer *out)
{
	if (flags & TALLY_BRANCH_PREDICTED)
		tally_buffer_text(out, "N");
	else
		tally_buffer_text(out, flags & TALLY_BRANCH_MISPREDICTED ? "Y" : "N/A");
}

static uint64_t in_transaction(const struct tally_fact_source *source)
{
	return source->branch->flags & TALLY_BRANCH_TRANSACTION;
}

static void in_transaction_text(uint64_t flag, struct tally_buffer *out)
{
	tally_buffer_text(out, flag ? "T" : ".");
}

static uint64_t is_aborted(const struct tally_fact_source *source)
{
	return source->branch->flags & TALLY_BRANCH_ABORTED;
}

static void abort_text(uint64_t flag, struct tally_buffer *out)
{
	tally_buffer_text(out, flag ? "A" : ".");
}

static uint64_t cycles(const struct tally_fact_source *source)
{
	uint64_t number = source->branch->flags >> TALLY_BRANCH_CYCLES_SHIFT & 0xffff;
	return number ? number : UINT32_MAX;
}

static void address_text(uint64_t address, struct tally_buffer *out)
{
	tally_buffer_printf(out, "0x%" PRIx64, address);
}

/* ---- times, sockets, code ------------------------------------------------ */

static uint64_t time_ns(const struct tally_fact_source *source)
{
	return source->sample->time / source->quantum_ns * source->quantum_ns;
}

static void time_text(uint64_t time, struct tally_buffer *out)
{
	const uint64_t second = 1000000000;
	tally_buffer_printf(out, "%" PRIu64 ".%06" PRIu64, time / second, time % second / 1000);
}

static int read_packages(struct tally_fact_reader *reader)
{
	const struct tally_perfdata *data = reader->recording->data;
	struct tally_reader cpus = tally_feature_reader(data, TALLY_FEATURE_NRCPUS);
	struct tally_reader topology = tally_feature_reader(data, TALLY_FEATURE_CPU_TOPOLOGY);
	struct tally_feature_topology_parts parts;
	uint32_t count, online;
	reader->packages_read = true;
	tally_feature_read_nrcpus(&cpus, &count, &online);
	tally_feature_read_cpu_topology(&topology, count, &parts);
	if (!count || !parts.has_cpus)
		return 0;
	reader->packages = malloc(count * sizeof(*reader->packages));
	if (!reader->packages)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		struct tally_feature_cpu cpu;
		tally_feature_read_cpu(&parts, &cpu);
		reader->packages[i] = cpu.package;
	}
	reader->package_count = count;
	return 0;
}

static uint32_t socket_string(struct tally_fact_reader *reader,
			      const struct tally_fact_source *source)
{
	uint32_t cpu = source->sample->cpu;
	if (!reader->packages_read && read_packages(reader) < 0)
		return TALLY_STRING_NONE;
	if (cpu < reader->package_count)
		tally_buffer_printf(&reader->text, "%" PRIu32, reader->packages[cpu]);
	else
		tally_buffer_text(&reader->text, "?");
	return tally_fact_intern_text(reader);
}

static uint32_t trace_string(struct tally_fact_reader *reader,
			     const struct tally_fact_source *source)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(reader->recording->data,
									  &count);
	reader->trace.recording = reader->recording;
	if (source->event->attr.type == TALLY_TYPE_TRACEPOINT && source->sample->raw)
		tally_event_text_put(&reader->trace, source->event,
				     (size_t)(source->event - events), source->sample,
				     &reader->text);
	else
		tally_buffer_text(&reader->text, "?");
	return reader->trace.failed ? TALLY_STRING_NONE : tally_fact_intern_text(reader);
}

/* ---- costs --------------------------------------------------------------- */

static uint64_t weight(const struct tally_fact_source *source)
{
	return tally_sample_cost(source->sample);
}

static uint64_t latency(const struct tally_fact_source *source)
{
	return tally_sample_latency(source->sample);
}

static uint64_t stage_cycles(const struct tally_fact_source *source)
{
	return tally_sample_stage_cycles(source->sample);
}

/* ---- memory -------------------------------------------------------------- */

static void physical_text(uint64_t address, struct tally_buffer *out)
{
	tally_buffer_printf(out, "0x%016" PRIx64, address);
}

/* The name of a data address depends on the task's maps, which change, so it is searched for each
 * sample.  Returns a variable with the offset in it (with `is_line` also a function), a function's
 * name, or the address. */
static uint32_t intern_data(struct tally_fact_reader *reader, const struct tally_sample *sample,
			    uint64_t address, bool is_line)
{
	struct tally_data_name name;
	if (tally_names_data(&reader->recording->names, sample->pid, address, &name) < 0)
		return TALLY_STRING_NONE;
	if (!name.name)
		tally_buffer_printf(&reader->text, "0x%016" PRIx64, address);
	else if (name.is_variable || is_line)
		tally_buffer_printf(&reader->text, "%s+0x%" PRIx64, name.name, name.offset);
	else
		tally_buffer_text(&reader->text, name.name);
	return tally_fact_intern_data(reader, tally_fact_intern_text(reader), &name);
}

static uint32_t data_symbol_string(struct tally_fact_reader *reader,
				   const struct tally_fact_source *source)
{
	return intern_data(reader, source->sample, source->sample->addr, false);
}

static uint32_t cacheline_string(struct tally_fact_reader *reader,
				 const struct tally_fact_source *source)
{
	uint64_t start = source->sample->addr & ~(uint64_t)(CACHE_LINE_BYTES - 1);
	return intern_data(reader, source->sample, start, true);
}

static uint32_t data_object_string(struct tally_fact_reader *reader,
				   const struct tally_fact_source *source)
{
	struct tally_data_name name;
	if (tally_names_data(&reader->recording->names, source->sample->pid, source->sample->addr,
			     &name) < 0)
		return TALLY_STRING_NONE;
	const char *object = name.object;
	if (strncmp(object, "//", 2) != 0)
		object = tally_object_short(object);
	tally_buffer_text(&reader->text, object);
	return tally_fact_intern_text(reader);
}

/* ---- needs --------------------------------------------------------------- */

enum { BRANCHES, BRANCH_FLAGS, BRANCH_CYCLES, WEIGHTS, WEIGHT_PARTS, TRANSACTIONS, TRACES, CPUS,
       TIMES, ADDRESSES, CODE_PAGES, DATA_ADDRESSES, PHYSICAL_ADDRESSES, DATA_PAGES, DATA_SOURCES };

/* If several are missing, the first is reported. */
static const struct tally_sort_need needs[] = {
	[BRANCHES] = { TALLY_SAMPLE_BRANCH_STACK, 0, "branch stacks",
		       "record them with tally record -b, if the CPU supports it "
		       "(few virtual machines do)" },
	[BRANCH_FLAGS] = { TALLY_SAMPLE_BRANCH_STACK, TALLY_BRANCH_NO_FLAGS,
			   "flags of its branches", "record them with tally record -b" },
	[BRANCH_CYCLES] = { TALLY_SAMPLE_BRANCH_STACK, TALLY_BRANCH_NO_CYCLES,
			    "cycles of its branches", "record them with tally record -b" },
	[WEIGHTS] = { TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT, 0, "weights",
		      "record them with tally record -W" },
	[WEIGHT_PARTS] = { TALLY_SAMPLE_WEIGHT_STRUCT, 0, "weights of several parts",
			   "record them with tally record -W, on CPUs that measure latencies" },
	[TRANSACTIONS] = { TALLY_SAMPLE_TRANSACTION, 0, "flags of transactions",
			   "record them with tally record --transaction" },
	[TRACES] = { TALLY_SAMPLE_RAW, 0, "samples of tracepoints",
		     "record some with tally record -e sched:sched_switch" },
	[CPUS] = { TALLY_SAMPLE_CPU, 0, "CPUs of samples",
		   "record them with tally record --sample-cpu, -a or -C" },
	[TIMES] = { TALLY_SAMPLE_TIME, 0, "times",
		    "record them with tally record, or perf record -T" },
	[ADDRESSES] = { TALLY_SAMPLE_IP, 0, "addresses of code",
			"record them with tally record" },
	[CODE_PAGES] = { TALLY_SAMPLE_CODE_PAGE_SIZE, 0, "sizes of code's pages",
			 "record them with tally record --code-page-size" },
	[DATA_ADDRESSES] = { TALLY_SAMPLE_ADDR, 0, "addresses of data",
			     "record them with tally record -d" },
	[PHYSICAL_ADDRESSES] = { TALLY_SAMPLE_PHYS_ADDR, 0, "physical addresses",
				 "record them with tally record --phys-data" },
	[DATA_PAGES] = { TALLY_SAMPLE_DATA_PAGE_SIZE, 0, "sizes of data's pages",
			 "record them with tally record --data-page-size" },
	[DATA_SOURCES] = { TALLY_SAMPLE_DATA_SRC, 0, "sources of data",
			   "record them with perf mem record, or with tally record -d -W and "
			   "a CPU event of loads or stores" },
};

/* ---- the keys ------------------------------------------------------------ */

#define SAMPLE_WORD(member) { TALLY_WORD_OF_SAMPLE, offsetof(struct tally_sample, member) }
#define BRANCH_WORD(member) { TALLY_WORD_OF_BRANCH, offsetof(struct tally_branch, member) }

#define ROW(key, ...) [TALLY_SORT_##key] = { __VA_ARGS__ },
static const struct tally_sort_row rows[TALLY_SORT_KEYS] = {
	TALLY_SORT_KEYS_OF_TASKS(ROW) TALLY_SORT_KEYS_OF_BRANCHES(ROW)
	TALLY_SORT_KEYS_OF_SAMPLES(ROW) TALLY_SORT_KEYS_OF_FRAMES(ROW)
};

const struct tally_sort_row *tally_sort_row(enum tally_sort_key key)
{
	return &rows[key];
}

uint64_t tally_sort_number(const struct tally_sort_row *row,
			   const struct tally_fact_source *source)
{
	const void *origin = source->sample;
	uint64_t number;
	if (row->number)
		return row->number(source);
	if (row->word.origin == TALLY_WORD_OF_BRANCH)
		origin = source->branch;
	memcpy(&number, (const char *)origin + row->word.offset, sizeof(number));
	return number;
}

const char *tally_sort_key_name(enum tally_sort_key key)
{
	return rows[key].name;
}

static bool is_named(const char *name, const char *text, unsigned length)
{
	return name && strlen(name) == length && !memcmp(name, text, length);
}

enum tally_sort_key tally_sort_key_find(const char *name, unsigned length)
{
	unsigned key = 0;
	while (key < TALLY_SORT_KEYS && !is_named(rows[key].name, name, length) &&
	       !is_named(rows[key].alias, name, length))
		key++;
	return (enum tally_sort_key)key;
}

bool tally_sort_keys_use_names(uint64_t keys)
{
	for (; keys; keys &= keys - 1)
		if (rows[__builtin_ctzll(keys)].uses_names)
			return true;
	return false;
}

bool tally_sort_key_needs(enum tally_sort_key key, const struct tally_sort_need *need)
{
	return rows[key].need == need ||
	       (need == &needs[BRANCHES] && TALLY_SORT_BIT(key) & TALLY_SORT_OF_BRANCHES);
}

static bool is_met(const struct tally_sort_need *need, const struct tally_recorded_event *events,
		   size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (events[i].attr.sample_type & need->sample_types &&
		    !(events[i].attr.branch_sample_type & need->without_branches))
			return true;
	return !count; /* a pipe */
}

const struct tally_sort_need *tally_sort_keys_lack(uint64_t keys, bool branches,
						   const struct tally_recording *recording)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &count);
	for (unsigned i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		bool is_needed = i == BRANCHES && branches;
		for (unsigned key = 0; key < TALLY_SORT_KEYS; key++)
			is_needed |= keys >> key & 1 && rows[key].need == &needs[i];
		if (is_needed && !is_met(&needs[i], events, count))
			return &needs[i];
	}
	return NULL;
}
