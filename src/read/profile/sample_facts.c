/* Interns facts, their texts and classes, so that each becomes a small number.  A name of data is
 * interned in its longest form, and shortened at the end as far as it stays unique. */
#include "profile/profile.h"

#include "base/vector.h"
#include "naming/naming.h"
#include "tally/perf_event.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t tally_facts_intern(struct tally_fact_table *table, const struct tally_sample_facts *facts)
{
	uint64_t key = 0;
	for (unsigned i = 0; i < TALLY_FACTS; i++)
		if (facts->values[i])
			key = tally_hash64(key ^ (uint64_t)facts->values[i] << 8 ^ i);
	for (;; key++) {
		bool added;
		uint64_t *slot = tally_map_put(&table->index, key, &added);
		if (!slot)
			return 0;
		if (added) {
			*slot = table->facts.count + 1;
			if (table->facts.count >= UINT32_MAX - 1 ||
			    tally_vector_push(&table->facts, *facts) < 0)
				return 0;
			return (uint32_t)*slot;
		}
		if (*slot <= table->facts.count &&
		    !memcmp(&table->facts.items[*slot - 1], facts, sizeof(*facts)))
			return (uint32_t)*slot;
	}
}

void tally_facts_release(struct tally_fact_table *table)
{
	tally_vector_release(&table->facts);
	tally_map_release(&table->index);
}

/* ---- texts --------------------------------------------------------------- */

uint32_t tally_fact_intern_text(struct tally_fact_reader *reader)
{
	struct tally_buffer *text = &reader->text;
	/* a blank remains after "Remote" without a level */
	while (text->length && text->bytes[text->length - 1] == ' ')
		text->bytes[--text->length] = '\0';
	uint32_t id = TALLY_STRING_NONE;
	if (!reader->text.failed)
		id = tally_strings_intern(&reader->recording->names.strings,
					  tally_buffer_string(&reader->text));
	tally_buffer_clear(&reader->text);
	return id;
}

static uint32_t intern_unknown(struct tally_fact_reader *reader)
{
	tally_buffer_text(&reader->text, "?");
	return tally_fact_intern_text(reader);
}

/* Most facts are numbers with few different values, so each text is made only once. */
static uint32_t intern_number(struct tally_fact_reader *reader, enum tally_sort_key key,
			      uint64_t number)
{
	const struct tally_sort_row *row = tally_sort_row(key);
	bool added;
	uint64_t *slot = tally_map_put(&reader->known[key - TALLY_SORT_BRANCHES_START], number,
				       &added);
	if (!slot)
		return TALLY_STRING_NONE;
	if (added) {
		if (row->text)
			row->text(number, &reader->text);
		else
			tally_buffer_printf(&reader->text, "%" PRIu64, number);
		*slot = tally_fact_intern_text(reader);
	}
	return (uint32_t)*slot;
}

/* ---- data ---------------------------------------------------------------- */

static bool count_owner(struct tally_fact_reader *reader, uint32_t text)
{
	uint64_t *owners = tally_map_put(&reader->owners, text, NULL);
	if (owners)
		++*owners;
	return owners != NULL;
}

uint32_t tally_fact_intern_data(struct tally_fact_reader *reader, uint32_t text,
				const struct tally_data_name *name)
{
	if (text == TALLY_STRING_NONE)
		return text;
	const struct tally_strings *strings = &reader->recording->names.strings;
	if (name->pid)
		tally_buffer_printf(&reader->text, "%s (pid %" PRIu32 ")",
				    tally_strings_text(strings, text), name->pid);
	else
		tally_buffer_printf(&reader->text, "%s (%s at 0x%" PRIx64 ")",
				    tally_strings_text(strings, text), name->object, name->start);
	uint32_t longest = tally_fact_intern_text(reader);
	bool added = false;
	if (longest == TALLY_STRING_NONE)
		return TALLY_STRING_NONE;
	uint64_t *slot = tally_map_put(&reader->longest, longest, &added);
	if (!slot)
		return TALLY_STRING_NONE;
	if (!added)
		return longest;
	uint32_t shorter = longest;
	if (!name->pid) {
		tally_buffer_printf(&reader->text, "%s (%s)", tally_strings_text(strings, text),
				    tally_object_short(name->object));
		shorter = tally_fact_intern_text(reader);
	}
	*slot = (uint64_t)shorter << 32 | text;
	bool is_known = shorter != TALLY_STRING_NONE && count_owner(reader, text) &&
			count_owner(reader, shorter);
	if (!is_known)
		return TALLY_STRING_NONE;
	return longest;
}

static uint32_t shortest(const struct tally_fact_reader *reader, uint32_t longest)
{
	const uint64_t *texts = tally_map_get(&reader->longest, longest);
	if (!texts)
		return longest;
	uint32_t shorter = (uint32_t)(*texts >> 32), text = (uint32_t)*texts;
	if (*tally_map_get(&reader->owners, text) == 1)
		return text;
	if (*tally_map_get(&reader->owners, shorter) == 1)
		return shorter;
	return longest;
}

void tally_facts_shorten(const struct tally_fact_reader *reader, struct tally_fact_table *table)
{
	for (size_t i = 0; reader->longest.count && i < table->facts.count; i++) {
		struct tally_sample_facts *facts = &table->facts.items[i];
		uint32_t *symbol = tally_fact(facts, TALLY_SORT_DATA_SYMBOL),
			 *line = tally_fact(facts, TALLY_SORT_CACHELINE);
		*symbol = shortest(reader, *symbol);
		*line = shortest(reader, *line);
	}
}

/* ---- reading ------------------------------------------------------------- */

int tally_facts_read(struct tally_fact_reader *reader, const struct tally_fact_source *source,
		     uint64_t keys, struct tally_sample_facts *facts)
{
	for (; keys; keys &= keys - 1) {
		enum tally_sort_key key = (enum tally_sort_key)__builtin_ctzll(keys);
		const struct tally_sort_row *row = tally_sort_row(key);
		uint32_t *value = tally_fact(facts, key);
		if (!tally_sort_has_number(row) && !row->string)
			continue; /* a place */
		if (row->need && !(source->sample->type & row->need->sample_types))
			*value = intern_unknown(reader);
		else if (row->string)
			*value = row->string(reader, source);
		else if (row->kind == TALLY_KIND_NUMBER)
			*value = (uint32_t)tally_sort_number(row, source);
		else
			*value = intern_number(reader, key, tally_sort_number(row, source));
		if (*value == TALLY_STRING_NONE && row->kind != TALLY_KIND_NUMBER)
			return -ENOMEM;
	}
	return 0;
}

void tally_fact_reader_release(struct tally_fact_reader *reader)
{
	for (unsigned i = 0; i < TALLY_FACTS; i++)
		tally_map_release(&reader->known[i]);
	tally_map_release(&reader->longest);
	tally_map_release(&reader->owners);
	tally_buffer_release(&reader->text);
	tally_event_text_release(&reader->trace);
	free(reader->packages);
}

uint32_t tally_class_intern(struct tally_profile *profile, struct tally_map *index,
			    const struct tally_class *class)
{
	uint64_t key = tally_hash64((uint64_t) class->thread << 32 | class->cpu) ^
		       tally_hash64((uint64_t) class->cgroup_id << 32 | (class->cgroup + 1)) ^
		       tally_hash64((uint64_t) class->waker << 32 | class->facts) ^
		       ((uint64_t) class->event << 32 | class->comm);
	for (;; key++) {
		bool added;
		uint64_t *slot = tally_map_put(index, key, &added);
		if (!slot)
			return UINT32_MAX;
		if (added) {
			*slot = profile->classes.count;
			if (tally_vector_push(&profile->classes, *class) < 0)
				return UINT32_MAX;
			return (uint32_t)*slot;
		}
		if (*slot < profile->classes.count &&
		    !memcmp(&profile->classes.items[*slot], class, sizeof(*class)))
			return (uint32_t)*slot;
	}
}

uint32_t tally_class_cgroup(struct tally_tasks *tasks, const struct tally_recorded_event *event,
			    uint64_t number)
{
	uint32_t known = tally_tasks_cgroup(tasks, number);
	char text[40];
	if (known != TALLY_STRING_NONE)
		return known;
	if (!(event->attr.sample_type & TALLY_SAMPLE_CGROUP))
		return tally_strings_intern(&tasks->strings, "N/A");
	snprintf(text, sizeof(text), "unknown %" PRIu64, number);
	return tally_strings_intern(&tasks->strings, text);
}

uint32_t tally_class_cgroup_namespace(struct tally_tasks *tasks, uint32_t pid, uint32_t tid)
{
	struct tally_namespace space = tally_tasks_namespace(tasks, pid, tid,
							     TALLY_NAMESPACE_CGROUP);
	char text[48];
	snprintf(text, sizeof(text), "%" PRIu64 "/0x%" PRIx64, space.device, space.inode);
	return tally_strings_intern(&tasks->strings, text);
}
