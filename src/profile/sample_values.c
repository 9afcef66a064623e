/* Most values are numbers of the sample with few different ones, so that each text is made only
 * once.  But the name of a data address depends on the task's maps, which change, so it is searched
 * for each sample. */
#include "profile/sample_values.h"

#include "base/reader.h"
#include "profile/data_source_text.h"

#include "tally/perf_event.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE_LINE_BYTES = 64 };

void tally_page_size_text(uint64_t bytes, struct tally_buffer *out)
{
	static const char units[] = "BKMG";
	unsigned unit = 0;
	for (; bytes >= 2 * 1024 && units[unit + 1]; bytes >>= 10)
		unit++;
	if (bytes)
		tally_buffer_printf(out, "%" PRIu64 "%c", bytes, units[unit]);
	else
		tally_buffer_text(out, "N/A");
}

/* Appends "TX CON NEITHER :2a", the flags of PERF_SAMPLE_TRANSACTION in perf's words; "-" for
 * none. */
static void transaction_text(uint64_t flags, struct tally_buffer *out)
{
	static const char *const words[8] = { "EL",    "TX",  "SYNC",      "ASYNC",
					      "RETRY", "CON", "CAP-WRITE", "CAP-READ" };
	const unsigned of_the_instruction = 1 << 2 | 1 << 3, code_shift = 32;
	const char *between = "";
	for (unsigned bit = 0; bit < sizeof(words) / sizeof(words[0]); bit++)
		if (flags >> bit & 1) {
			tally_buffer_printf(out, "%s%s", between, words[bit]);
			between = " ";
		}
	if (flags && !(flags & of_the_instruction))
		tally_buffer_printf(out, "%sNEITHER", between);
	if (flags >> code_shift)
		tally_buffer_printf(out, " :%" PRIx64, flags >> code_shift);
	if (!flags)
		tally_buffer_text(out, "-");
}

/* ---- sockets ------------------------------------------------------------- */

static void pass_strings(struct tally_reader *reader)
{
	for (uint32_t left = tally_reader_u32(reader); left && !reader->failed; left--)
		tally_reader_bytes(reader, tally_reader_u32(reader));
}

/* CPU_TOPOLOGY: lists of packages and of threads, then the core and the package of each CPU that
 * NRCPUS counts. */
static int read_packages(struct tally_sample_values *values)
{
	const struct tally_perfdata *data = values->recording->data;
	struct tally_feature_bytes cpus = tally_perfdata_feature(data, TALLY_FEATURE_NRCPUS);
	struct tally_feature_bytes topology = tally_perfdata_feature(data,
								     TALLY_FEATURE_CPU_TOPOLOGY);
	struct tally_reader reader;
	values->packages_read = true;
	if (!cpus.bytes || !topology.bytes)
		return 0;
	tally_reader_init(&reader, cpus.bytes, cpus.size, false);
	uint32_t count = tally_reader_u32(&reader);
	tally_reader_init(&reader, topology.bytes, topology.size, false);
	pass_strings(&reader);
	pass_strings(&reader);
	if (reader.failed || tally_reader_left(&reader) / 8 < count)
		return 0;
	values->packages = malloc((count + 1) * sizeof(*values->packages));
	if (!values->packages)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		tally_reader_u32(&reader);
		values->packages[i] = tally_reader_u32(&reader);
	}
	values->package_count = count;
	return 0;
}

/* ---- texts --------------------------------------------------------------- */

static void put_time(uint64_t time_ns, struct tally_buffer *out)
{
	const uint64_t second = 1000000000;
	tally_buffer_printf(out, "%" PRIu64 ".%06" PRIu64, time_ns / second,
			    time_ns % second / 1000);
}

static void put_value(const struct tally_sample_values *values, enum tally_sample_value value,
		      uint64_t number, struct tally_buffer *out)
{
	switch (value) {
	case TALLY_VALUE_TRANSACTION: transaction_text(number, out); break;
	case TALLY_VALUE_SOCKET:
		if (number < values->package_count)
			tally_buffer_printf(out, "%" PRIu32, values->packages[number]);
		else
			tally_buffer_text(out, "?");
		break;
	case TALLY_VALUE_TIME: put_time(number, out); break;
	case TALLY_VALUE_CODE_PAGE:
	case TALLY_VALUE_DATA_PAGE: tally_page_size_text(number, out); break;
	case TALLY_VALUE_PHYSICAL: tally_buffer_printf(out, "0x%016" PRIx64, number); break;
	case TALLY_VALUE_LEVEL: tally_data_level_text(number, out); break;
	case TALLY_VALUE_SNOOP: tally_data_snoop_text(number, out); break;
	case TALLY_VALUE_TLB: tally_data_tlb_text(number, out); break;
	case TALLY_VALUE_LOCK: tally_data_lock_text(number, out); break;
	case TALLY_VALUE_BLOCK: tally_data_block_text(number, out); break;
	case TALLY_VALUE_ADDRESS:
	case TALLY_VALUE_ADDRESS_FROM:
	case TALLY_VALUE_ADDRESS_TO: tally_buffer_printf(out, "0x%" PRIx64, number); break;
	default: tally_buffer_printf(out, "%" PRIu64, number); break;
	}
}

static uint32_t intern_text(struct tally_sample_values *values)
{
	struct tally_buffer *text = &values->text;
	/* a blank remains after "Remote" without a level */
	while (text->length && text->bytes[text->length - 1] == ' ')
		text->bytes[--text->length] = '\0';
	uint32_t id = values->text.failed
			      ? TALLY_STRING_NONE
			      : tally_strings_intern(&values->recording->names.strings,
						     tally_buffer_string(&values->text));
	tally_buffer_clear(&values->text);
	return id;
}

static uint32_t intern_number(struct tally_sample_values *values, enum tally_sample_value value,
			      uint64_t number)
{
	bool added;
	uint64_t *slot = tally_map_put(&values->known[value], number, &added);
	if (!slot)
		return TALLY_STRING_NONE;
	if (added) {
		put_value(values, value, number, &values->text);
		*slot = intern_text(values);
	}
	return (uint32_t)*slot;
}

uint32_t tally_sample_values_address(struct tally_sample_values *values,
				     enum tally_sample_value value, uint64_t address)
{
	return intern_number(values, value, address);
}

/* ---- data ---------------------------------------------------------------- */

static bool count_owner(struct tally_sample_values *values, uint32_t text)
{
	uint64_t *owners = tally_map_put(&values->owners, text, NULL);
	if (owners)
		++*owners;
	return owners != NULL;
}

/* Makes unique texts: two libraries may have variables of one name, and two processes have
 * different data at one address. */
static uint32_t intern_apart(struct tally_sample_values *values, uint32_t text,
			     const struct tally_data_name *name)
{
	if (text == TALLY_STRING_NONE)
		return text;
	const struct tally_strings *strings = &values->recording->names.strings;
	if (name->pid)
		tally_buffer_printf(&values->text, "%s (pid %" PRIu32 ")",
				    tally_strings_text(strings, text), name->pid);
	else
		tally_buffer_printf(&values->text, "%s (%s at 0x%" PRIx64 ")",
				    tally_strings_text(strings, text), name->object, name->start);
	uint32_t longest = intern_text(values);
	bool added = false;
	uint64_t *slot = longest == TALLY_STRING_NONE
				 ? NULL
				 : tally_map_put(&values->longest, longest, &added);
	if (!slot || !added)
		return slot ? longest : TALLY_STRING_NONE;
	uint32_t shorter = longest;
	if (!name->pid) {
		tally_buffer_printf(&values->text, "%s (%s)", tally_strings_text(strings, text),
				    tally_object_short(name->object));
		shorter = intern_text(values);
	}
	*slot = (uint64_t)shorter << 32 | text;
	bool is_known = shorter != TALLY_STRING_NONE && count_owner(values, text) &&
			count_owner(values, shorter);
	return is_known ? longest : TALLY_STRING_NONE;
}

/* Returns the text for a data address.  A variable with the offset in it, or a function; the start
 * of its cache line; or the object. */
static uint32_t intern_data(struct tally_sample_values *values, enum tally_sample_value value,
			    const struct tally_sample *sample)
{
	struct tally_data_name name;
	bool is_line = value == TALLY_VALUE_CACHELINE;
	uint64_t address = is_line ? sample->addr & ~(uint64_t)(CACHE_LINE_BYTES - 1)
				   : sample->addr;
	if (tally_names_data(&values->recording->names, sample->pid, address, &name) < 0)
		return TALLY_STRING_NONE;
	if (value == TALLY_VALUE_DATA_OBJECT)
		tally_buffer_text(&values->text, strncmp(name.object, "//", 2)
							 ? tally_object_short(name.object)
							 : name.object);
	else if (!name.name)
		tally_buffer_printf(&values->text, "0x%016" PRIx64, address);
	else if (name.is_variable || is_line)
		tally_buffer_printf(&values->text, "%s+0x%" PRIx64, name.name, name.offset);
	else
		tally_buffer_text(&values->text, name.name);
	uint32_t text = intern_text(values);
	return value == TALLY_VALUE_DATA_OBJECT ? text : intern_apart(values, text, &name);
}

static uint32_t shortest(const struct tally_sample_values *values, uint32_t longest)
{
	const uint64_t *texts = tally_map_get(&values->longest, longest);
	if (!texts)
		return longest;
	uint32_t shorter = (uint32_t)(*texts >> 32), text = (uint32_t)*texts;
	if (*tally_map_get(&values->owners, text) == 1)
		return text;
	return *tally_map_get(&values->owners, shorter) == 1 ? shorter : longest;
}

void tally_sample_values_shorten(const struct tally_sample_values *values,
				 struct tally_fact_table *facts)
{
	for (size_t i = 0; values->longest.count && i < facts->facts.count; i++) {
		uint32_t *texts = facts->facts.items[i].values;
		texts[TALLY_VALUE_DATA_SYMBOL] = shortest(values, texts[TALLY_VALUE_DATA_SYMBOL]);
		texts[TALLY_VALUE_CACHELINE] = shortest(values, texts[TALLY_VALUE_CACHELINE]);
	}
}

/* Returns a tracepoint's text alone. */
static uint32_t intern_trace(struct tally_sample_values *values,
			     const struct tally_recorded_event *event,
			     const struct tally_sample *sample)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(values->recording->data,
									  &count);
	values->trace.recording = values->recording;
	if (event->attr.type == TALLY_TYPE_TRACEPOINT && sample->raw)
		tally_trace_text_put(&values->trace, event, (size_t)(event - events), sample,
				     &values->text);
	else
		tally_buffer_text(&values->text, "?");
	return values->trace.failed ? TALLY_STRING_NONE : intern_text(values);
}

/* Gets the number that a value is made from.  Returns false if the sample lacks it. */
static bool number_of(const struct tally_sample_values *values, enum tally_sample_value value,
		      const struct tally_sample *sample, uint64_t *number)
{
	const uint64_t weights = TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT;
	switch (value) {
	case TALLY_VALUE_WEIGHT: *number = tally_sample_cost(sample); return sample->type & weights;
	case TALLY_VALUE_LATENCY:
		*number = tally_sample_latency(sample);
		return sample->type & TALLY_SAMPLE_WEIGHT_STRUCT;
	case TALLY_VALUE_STAGE:
		*number = tally_sample_stage_cycles(sample);
		return sample->type & TALLY_SAMPLE_WEIGHT_STRUCT;
	case TALLY_VALUE_TRANSACTION:
		*number = sample->transaction;
		return sample->type & TALLY_SAMPLE_TRANSACTION;
	case TALLY_VALUE_SOCKET: *number = sample->cpu; return sample->type & TALLY_SAMPLE_CPU;
	case TALLY_VALUE_TIME: *number = sample->time / values->quantum_ns * values->quantum_ns;
		return sample->type & TALLY_SAMPLE_TIME;
	case TALLY_VALUE_ADDRESS: *number = sample->ip; return sample->type & TALLY_SAMPLE_IP;
	case TALLY_VALUE_CODE_PAGE:
		*number = sample->code_page_size;
		return sample->type & TALLY_SAMPLE_CODE_PAGE_SIZE;
	case TALLY_VALUE_DATA_PAGE:
		*number = sample->data_page_size;
		return sample->type & TALLY_SAMPLE_DATA_PAGE_SIZE;
	case TALLY_VALUE_PHYSICAL:
		*number = sample->phys_addr;
		return sample->type & TALLY_SAMPLE_PHYS_ADDR;
	case TALLY_VALUE_DATA_SYMBOL:
	case TALLY_VALUE_DATA_OBJECT:
	case TALLY_VALUE_CACHELINE: return sample->type & TALLY_SAMPLE_ADDR;
	default: *number = sample->data_src; return sample->type & TALLY_SAMPLE_DATA_SRC;
	}
}

static bool is_of_data(enum tally_sample_value value)
{
	return value == TALLY_VALUE_DATA_SYMBOL || value == TALLY_VALUE_DATA_OBJECT ||
	       value == TALLY_VALUE_CACHELINE;
}

int tally_sample_values_read(struct tally_sample_values *values,
			     const struct tally_recorded_event *event,
			     const struct tally_sample *sample, unsigned facts, uint32_t *out)
{
	if (facts & TALLY_FACT_VALUE(TALLY_VALUE_SOCKET) && !values->packages_read &&
	    read_packages(values) < 0)
		return -ENOMEM;
	for (unsigned value = 0; value < TALLY_VALUES; value++) {
		uint64_t number = 0;
		bool is_of_branch = value == TALLY_VALUE_ADDRESS_FROM ||
				    value == TALLY_VALUE_ADDRESS_TO;
		if (!(facts & TALLY_FACT_VALUE(value)) || is_of_branch)
			continue;
		if (value == TALLY_VALUE_TRACE) {
			out[value] = intern_trace(values, event, sample);
		} else if (!number_of(values, value, sample, &number)) {
			tally_buffer_text(&values->text, "?");
			out[value] = intern_text(values);
		} else {
			out[value] = is_of_data(value) ? intern_data(values, value, sample)
						       : intern_number(values, value, number);
		}
		if (out[value] == TALLY_STRING_NONE)
			return -ENOMEM;
	}
	return 0;
}

void tally_sample_values_release(struct tally_sample_values *values)
{
	for (unsigned value = 0; value < TALLY_VALUES; value++)
		tally_map_release(&values->known[value]);
	tally_map_release(&values->longest);
	tally_map_release(&values->owners);
	tally_buffer_release(&values->text);
	tally_trace_text_release(&values->trace);
	free(values->packages);
}
