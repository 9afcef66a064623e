/* pprof: Profile of github.com/google/pprof, proto/profile.proto, in protobuf's wire format.
 *
 * A field is a key (number << 3 | type), then a varint or the length and bytes of a message, a
 * string or packed varints. A message is preceded by its length, so each is built in a buffer of
 * its own.
 */
#include "base/extremes.h"
#include "export/export_internal.h"

#include "base/characters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, BYTES = 2 };

/* Field numbers of proto/profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING_TABLE,
	PROFILE_DURATION = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT };
enum { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_STR, LABEL_NUM };
enum {
	MAPPING_ID = 1,
	MAPPING_START,
	MAPPING_LIMIT,
	MAPPING_OFFSET,
	MAPPING_FILENAME,
	MAPPING_BUILD_ID,
	MAPPING_HAS_FUNCTIONS,
	MAPPING_HAS_FILENAMES,
	MAPPING_HAS_LINES,
	MAPPING_HAS_INLINES
};
enum { LOCATION_ID = 1, LOCATION_MAPPING_ID, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION_ID = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILENAME };

struct pprof {
	const struct tally_samples *samples;
	struct tally_buffer *out;
	struct tally_strings
		strings; /* id + 1 is the index in the string table, whose first string is "" */
	struct tally_buffer message, inner;
	bool failed;
};

static void put_varint(struct tally_buffer *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		tally_buffer_char(out, (char)(value | 0x80));
	tally_buffer_char(out, (char)value);
}

static void put_number(struct tally_buffer *out, unsigned field, uint64_t value)
{
	if (!value)
		return; /* 0 is the default and is not written */
	put_varint(out, field << 3 | VARINT);
	put_varint(out, value);
}

static void put_bytes(struct tally_buffer *out, unsigned field, const void *bytes, size_t size)
{
	put_varint(out, field << 3 | BYTES);
	put_varint(out, size);
	tally_buffer_append(out, bytes, size);
}

static void put_message(struct tally_buffer *out, unsigned field, struct tally_buffer *message)
{
	put_bytes(out, field, tally_buffer_string(message), message->length);
	tally_buffer_clear(message);
}

/* Returns the number of a string.  Protobuf's strings are UTF-8; other bytes become U+FFFD. */
static uint64_t text(struct pprof *pprof, const char *words)
{
	struct tally_buffer utf8 = { 0 };
	uint32_t character;
	if (!words || !words[0])
		return 0;
	if (!words[tally_plain_ascii(words, SIZE_MAX)]) {
		uint32_t plain = tally_strings_intern(&pprof->strings, words);
		pprof->failed |= plain == TALLY_STRING_NONE;
		return (uint64_t)plain + 1;
	}
	while (*words) {
		unsigned length = tally_character_decode(words, &character);
		if (length) {
			tally_buffer_append(&utf8, words, length);
			words += length;
		} else {
			tally_buffer_text(&utf8, "\xef\xbf\xbd");
			words++;
		}
	}
	uint32_t id = tally_strings_intern_buffer(&pprof->strings, &utf8);
	pprof->failed |= id == TALLY_STRING_NONE;
	return (uint64_t)id + 1;
}

static void put_value_type(struct pprof *pprof, unsigned field, const char *type, const char *unit)
{
	put_number(&pprof->message, VALUE_TYPE_TYPE, text(pprof, type));
	put_number(&pprof->message, VALUE_TYPE_UNIT, text(pprof, unit));
	put_message(pprof->out, field, &pprof->message);
}

/* Writes one mapping for each file; id 0 means no mapping. */
static void put_mapping(struct pprof *pprof, uint32_t number)
{
	const struct tally_tasks *tasks = &pprof->samples->recording->tasks;
	const struct tally_mapped_file *file = &tasks->files.items[number];
	char id[2 * sizeof(file->build_id.bytes) + 1] = "";
	for (unsigned b = 0; b < file->build_id.size; b++)
		sprintf(id + 2 * b, "%02x", file->build_id.bytes[b]);
	put_number(&pprof->message, MAPPING_ID, (uint64_t)number + 1);
	/* addresses are offsets in the file */
	put_number(&pprof->message, MAPPING_LIMIT, UINT64_MAX >> 1);
	put_number(&pprof->message, MAPPING_FILENAME, text(pprof, tally_tasks_path(tasks, number)));
	put_number(&pprof->message, MAPPING_BUILD_ID, text(pprof, id));
	put_number(&pprof->message, MAPPING_HAS_FUNCTIONS, 1);
	put_number(&pprof->message, MAPPING_HAS_FILENAMES, 1);
	put_number(&pprof->message, MAPPING_HAS_LINES, 1);
	put_number(&pprof->message, MAPPING_HAS_INLINES, 1);
	put_message(pprof->out, PROFILE_MAPPING, &pprof->message);
}

/* Returns the file that has the first task's name (python3: /usr/bin/python3.11). pprof takes the
 * first mapping as the profile's title. */
static uint32_t main_file(const struct tally_samples *samples)
{
	const struct tally_tasks *tasks = &samples->recording->tasks;
	const char *comm;
	tally_export_task(samples, samples->samples.items[0].thread, &comm);
	for (uint32_t i = 0; i < tasks->files.count; i++) {
		const char *slash = strrchr(tally_tasks_path(tasks, i), '/');
		if (slash && !strncmp(slash + 1, comm, strlen(comm)))
			return i;
	}
	return 0;
}

/* Puts the main program's mapping first. */
static void put_mappings(struct pprof *pprof)
{
	const struct tally_tasks *tasks = &pprof->samples->recording->tasks;
	uint32_t first = main_file(pprof->samples);
	if (first < tasks->files.count)
		put_mapping(pprof, first);
	for (uint32_t i = 0; i < tasks->files.count; i++)
		if (i != first)
			put_mapping(pprof, i);
}

static void put_locations(struct pprof *pprof)
{
	const struct tally_samples *samples = pprof->samples;
	const struct tally_names *names = &samples->recording->names;
	size_t files = samples->recording->tasks.files.count;
	for (size_t i = 0; i < samples->places.places.count; i++) {
		const struct tally_place *place = &samples->places.places.items[i];
		const struct tally_place_name *name = &samples->names[i];
		put_number(&pprof->message, LOCATION_ID, i + 1);
		if (place->file < files)
			put_number(&pprof->message, LOCATION_MAPPING_ID, (uint64_t)place->file + 1);
		put_number(&pprof->message, LOCATION_ADDRESS, place->address);
		for (uint32_t f = 0; f < name->count; f++) {
			const struct tally_place_frame *frame =
				&names->frames.items[name->first + f];
			put_number(&pprof->inner, LINE_FUNCTION_ID, (uint64_t)frame->function + 1);
			put_number(&pprof->inner, LINE_LINE, frame->line);
			put_message(&pprof->message, LOCATION_LINE, &pprof->inner);
		}
		put_message(pprof->out, PROFILE_LOCATION, &pprof->message);
	}
}

static void put_functions(struct pprof *pprof, const uint32_t *files)
{
	const struct tally_names *names = &pprof->samples->recording->names;
	for (uint32_t i = 0; i < names->functions.count; i++) {
		uint64_t name = text(pprof, tally_names_plain_text(names, i));
		uint64_t system_name = name, filename = 0;
		uint32_t symbol = names->functions.items[i].symbol;
		if (symbol != TALLY_STRING_NONE)
			system_name = text(pprof, tally_strings_text(&names->strings, symbol));
		if (files[i] != TALLY_STRING_NONE)
			filename = text(pprof, tally_strings_text(&names->strings, files[i]));
		put_number(&pprof->message, FUNCTION_ID, (uint64_t)i + 1);
		put_number(&pprof->message, FUNCTION_NAME, name);
		put_number(&pprof->message, FUNCTION_SYSTEM_NAME, system_name);
		put_number(&pprof->message, FUNCTION_FILENAME, filename);
		put_message(pprof->out, PROFILE_FUNCTION, &pprof->message);
	}
}

static void put_label(struct pprof *pprof, const char *key, const char *words, uint64_t number)
{
	put_number(&pprof->inner, LABEL_KEY, text(pprof, key));
	put_number(&pprof->inner, LABEL_STR, text(pprof, words));
	put_number(&pprof->inner, LABEL_NUM, number);
	put_message(&pprof->message, SAMPLE_LABEL, &pprof->inner);
}

/* Puts one stack in one thread, with the sums of its samples. */
static void put_sample(struct pprof *pprof, uint32_t stack, uint32_t thread, uint64_t count,
		       uint64_t period)
{
	const uint8_t *end, *at = tally_row_stack(&pprof->samples->stacks, stack, &end);
	const char *comm;
	const struct tally_thread *task = tally_export_task(pprof->samples, thread, &comm);
	while (at < end)
		put_varint(&pprof->inner, (uint64_t)tally_stack_next_place(&at) + 1);
	put_message(&pprof->message, SAMPLE_LOCATION_ID, &pprof->inner);
	put_varint(&pprof->inner, count);
	put_varint(&pprof->inner, period);
	put_message(&pprof->message, SAMPLE_VALUE, &pprof->inner);
	put_label(pprof, "thread", comm, 0);
	put_label(pprof, "pid", NULL, task->pid);
	put_label(pprof, "tid", NULL, task->tid);
	put_message(pprof->out, PROFILE_SAMPLE, &pprof->message);
}

struct keyed {
	uint64_t key; /* thread << 32 | stack */
	uint64_t period;
};

static int by_key(const void *left, const void *right)
{
	const struct keyed *a = left, *b = right;
	return tally_compare_u64(a->key, b->key);
}

static int put_samples(struct pprof *pprof, uint32_t event)
{
	size_t all = pprof->samples->samples.count, count = 0;
	struct keyed *keyed = malloc((all + 1) * sizeof(*keyed));
	if (!keyed)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++) {
		const struct tally_one_sample *sample = &pprof->samples->samples.items[i];
		if (sample->event == event)
			keyed[count++] = (struct keyed){
				(uint64_t)sample->thread << 32 | sample->stack, sample->period
			};
	}
	if (count)
		qsort(keyed, count, sizeof(*keyed), by_key);
	for (size_t i = 0; i < count;) {
		size_t first = i;
		uint64_t period = 0;
		for (; i < count && keyed[i].key == keyed[first].key; i++)
			period += keyed[i].period;
		put_sample(pprof, (uint32_t)keyed[first].key, (uint32_t)(keyed[first].key >> 32),
			   i - first, period);
	}
	free(keyed);
	return 0;
}

int tally_export_pprof(const struct tally_samples *samples, uint32_t event,
		       struct tally_buffer *out)
{
	struct pprof pprof = { .samples = samples, .out = out };
	const struct tally_one_sample *all = samples->samples.items;
	const char *name = tally_export_event_name(samples, event);
	const char *unit = tally_export_is_time(samples, event) ? "nanoseconds" : "count";
	uint32_t *files = tally_export_files(samples);
	put_value_type(&pprof, PROFILE_SAMPLE_TYPE, "samples", "count");
	put_value_type(&pprof, PROFILE_SAMPLE_TYPE, name, unit);
	put_value_type(&pprof, PROFILE_PERIOD_TYPE, name, unit);
	put_number(out, PROFILE_PERIOD, all[samples->samples.count / 2].period);
	put_number(out, PROFILE_DURATION, all[samples->samples.count - 1].time - all[0].time);
	put_number(out, PROFILE_DEFAULT_SAMPLE_TYPE, text(&pprof, name));
	int result = -ENOMEM;
	if (files)
		result = put_samples(&pprof, event);
	if (!result) {
		put_mappings(&pprof);
		put_locations(&pprof);
		put_functions(&pprof, files);
		put_bytes(out, PROFILE_STRING_TABLE, "", 0);
	}
	for (uint32_t i = 0; i < pprof.strings.count; i++)
		put_bytes(out, PROFILE_STRING_TABLE, tally_strings_text(&pprof.strings, i),
			  strlen(tally_strings_text(&pprof.strings, i)));
	bool failed = pprof.failed || pprof.message.failed || pprof.inner.failed || out->failed;
	tally_strings_release(&pprof.strings);
	tally_buffer_release(&pprof.message);
	tally_buffer_release(&pprof.inner);
	free(files);
	if (result || failed)
		return -ENOMEM;
	return 0;
}
