/* Writes a profile's places with their names to tally's own section. */
#include "profile/name_section.h"

#include "perfdata/own_feature.h"
#include "naming/name_functions.h"
#include "naming/name_tables.h"
#include "naming/packed_jits.h"
#include "naming/packed_names.h"
#include "profile/profile.h"

#include <errno.h>
#include <stdlib.h>

uint64_t tally_pack_string(struct tally_packer *packer, const char *text)
{
	bool added;
	uint64_t *id = tally_map_put(&packer->string_ids, (uint64_t)(uintptr_t)text, &added);
	if (!id)
		return 0;
	if (added) {
		tally_buffer_text(&packer->strings, text);
		tally_buffer_char(&packer->strings, '\0');
		*id = ++packer->string_count;
	}
	return *id;
}

static void put_string(struct tally_packer *packer, const char *text)
{
	uint64_t id = tally_pack_string(packer, text);
	packer->strings.failed |= !id;
	tally_own_put_number(&packer->places, id - 1);
}

/* Parts 7 and 8: source files that tell functions of one name apart, and files that declare
 * functions. */
static void put_text(struct tally_packer *packer, struct tally_buffer *part, uint32_t id,
		     uint32_t text)
{
	if (text == TALLY_STRING_NONE)
		return;
	uint64_t string = tally_pack_string(packer,
					    tally_strings_text(&packer->names->strings, text));
	packer->strings.failed |= !string;
	tally_own_put_number(part, id);
	tally_own_put_number(part, string - 1);
}

uint32_t tally_pack_function(struct tally_packer *packer, uint32_t number)
{
	const struct tally_strings *strings = &packer->names->strings;
	const struct tally_function *function = &packer->names->functions.items[number];
	if (!packer->function_ids[number]) {
		uint64_t name = function->name == TALLY_STRING_NONE
					? 0
					: tally_pack_string(
						  packer,
						  tally_strings_text(strings, function->name));
		uint64_t object = tally_pack_string(packer,
						    tally_strings_text(strings, function->object));
		packer->strings.failed |= !object || (function->name != TALLY_STRING_NONE && !name);
		tally_own_put_number(&packer->functions, function->kind);
		tally_own_put_number(&packer->functions, name);
		tally_own_put_number(&packer->functions, object - 1);
		tally_own_put_number(&packer->functions, function->start + 1);
		packer->function_ids[number] = ++packer->function_count;
		put_text(packer, &packer->sources, packer->function_count - 1, function->source);
		put_text(packer, &packer->declared, packer->function_count - 1,
			 function->declared);
	}
	return packer->function_ids[number] - 1;
}

static void put_frames(struct tally_packer *packer, const struct tally_place_name *name)
{
	const struct tally_names *names = packer->names;
	for (uint32_t i = 0; i < name->count; i++) {
		const struct tally_place_frame *frame = &names->frames.items[name->first + i];
		bool has_file = frame->file != TALLY_STRING_NONE;
		tally_own_put_number(&packer->places, tally_pack_function(packer, frame->function));
		tally_own_put_number(
			&packer->places,
			has_file ? tally_pack_string(
					   packer, tally_strings_text(&names->strings, frame->file))
				 : 0);
		tally_own_put_number(&packer->places, frame->line);
	}
}

static void put_build_id(struct tally_packer *packer, uint32_t id)
{
	const struct tally_build_id build_id = tally_names_build_id(packer->names, id);
	tally_own_put_number(&packer->places, build_id.size);
	tally_buffer_append(&packer->places, build_id.bytes, build_id.size);
}

/* Writes the object that the first `count` places are in, and these places. */
static void put_object(struct tally_packer *packer, const struct tally_known_place *first,
		       size_t count)
{
	static const struct tally_mapped_file nothing;
	uint32_t id = first->file;
	bool is_kernel = id == TALLY_FILE_KERNEL;
	const struct tally_mapped_file *file = is_kernel ? &nothing
							 : &packer->names->tasks->files.items[id];
	struct tally_buffer *out = &packer->places;
	uint64_t address = 0;
	tally_own_put_number(out, is_kernel);
	put_string(packer,
		   is_kernel ? "[kernel.kallsyms]" : tally_tasks_path(packer->names->tasks, id));
	tally_own_put_number(out, file->pid);
	tally_own_put_number(out, file->major);
	tally_own_put_number(out, file->minor);
	tally_own_put_number(out, file->inode);
	tally_own_put_number(out, file->inode_generation);
	put_build_id(packer, id);
	tally_own_put_number(out, count);
	for (size_t i = 0; i < count; i++) {
		const struct tally_place *place = first[i].place;
		const struct tally_place_name *name = first[i].name;
		tally_own_put_number(out, place->address - address);
		tally_own_put_number(out, (uint64_t)(name->count - 1) << 1 | place->before);
		tally_own_put_number(out, name->offset);
		put_frames(packer, name);
		address = place->address;
	}
}

static int by_file_and_address(const void *a_, const void *b_)
{
	const struct tally_known_place *a = a_, *b = b_;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->place->address != b->place->address)
		return a->place->address < b->place->address ? -1 : 1;
	return (int)a->place->before - (int)b->place->before;
}

/* True if the place has a name, or its file's symbols could be searched for one.  Other places are
 * left out: a reader may have the file, and can name them. */
static bool is_known(struct tally_packer *packer, uint32_t file,
		     const struct tally_place_name *name, const struct tally_place *place)
{
	const struct tally_names *names = packer->names;
	const struct tally_place_frame *frame = &names->frames.items[name->first + name->count - 1];
	if (names->functions.items[frame->function].name != TALLY_STRING_NONE ||
	    tally_names_recorded_place(packer->names, place))
		return true;
	const struct tally_name_table *table = tally_name_table_of(packer->names, file);
	return table && table->symbols;
}

/* Places of the kernel may come from several of its mappings, or from none.  They all belong to one
 * object, so equal ones are dropped. */
static void drop_doubles(struct tally_packer *packer)
{
	size_t kept = 0;
	for (size_t i = 0; i < packer->count; i++)
		if (!kept || by_file_and_address(&packer->known[kept - 1], &packer->known[i]))
			packer->known[kept++] = packer->known[i];
	packer->asked -= packer->count - kept;
	packer->count = kept;
}

static void choose(struct tally_packer *packer, const struct tally_place_table *table,
		   const struct tally_place_name *names)
{
	for (size_t i = 0; i < table->places.count; i++) {
		const struct tally_place *place = &table->places.items[i];
		uint32_t file = tally_names_file(packer->names, place);
		packer->asked += file != TALLY_FILE_NONE;
		if (file != TALLY_FILE_NONE && is_known(packer, file, &names[i], place))
			packer->known[packer->count++] = (struct tally_known_place){ file, place,
										     &names[i] };
	}
}

static int choose_places(struct tally_packer *packer, const struct tally_profile *profile,
			 const struct tally_place_table *others)
{
	const struct tally_place_table none = { 0 };
	others = others ? others : &none;
	size_t other_count = others->places.count;
	packer->other_names = malloc((other_count + 1) * sizeof(*packer->other_names));
	packer->known = malloc((profile->places.places.count + other_count + 1) *
			       sizeof(*packer->known));
	if (!packer->other_names || !packer->known ||
	    tally_names_resolve(packer->names, others->places.items, other_count,
				packer->other_names) < 0 ||
	    tally_names_tell_apart(packer->names) < 0)
		return -ENOMEM;
	packer->function_ids = calloc(packer->names->functions.count + 1,
				      sizeof(*packer->function_ids));
	if (!packer->function_ids)
		return -ENOMEM;
	choose(packer, &profile->places, profile->names);
	choose(packer, others, packer->other_names);
	qsort(packer->known, packer->count, sizeof(*packer->known), by_file_and_address);
	drop_doubles(packer);
	return 0;
}

static void put_places(struct tally_packer *packer)
{
	for (size_t first = 0, end; first < packer->count; first = end) {
		end = first + 1;
		while (end < packer->count && packer->known[end].file == packer->known[first].file)
			end++;
		put_object(packer, &packer->known[first], end - first);
	}
}

int tally_make_name_section(struct tally_profile *profile, const struct tally_place_table *others,
		     struct tally_buffer *out, size_t *places, size_t *known)
{
	struct tally_packer packer = { .names = &profile->recording->names };
	const struct tally_packed_stacks *stacks = profile->recording->stacks.noted;
	struct tally_buffer code = { 0 };
	bool has_stacks = stacks && stacks->chains.count;
	int result = choose_places(&packer, profile, others);
	if (!result && (packer.count || has_stacks)) {
		put_places(&packer);
		result = tally_pack_code(&packer, profile, &code);
		tally_own_feature_begin(out);
		if (code.length)
			tally_own_feature_add(out, TALLY_OWN_CODE, code.bytes, code.length);
		tally_own_feature_add(out, TALLY_OWN_STRINGS, packer.strings.bytes,
				      packer.strings.length);
		tally_own_feature_add(out, TALLY_OWN_FUNCTIONS, packer.functions.bytes,
				      packer.functions.length);
		tally_own_feature_add(out, TALLY_OWN_PLACES, packer.places.bytes,
				      packer.places.length);
		if (packer.declared.length)
			tally_own_feature_add(out, TALLY_OWN_DECLARED, packer.declared.bytes,
					      packer.declared.length);
		if (packer.sources.length)
			tally_own_feature_add(out, TALLY_OWN_SOURCES, packer.sources.bytes,
					      packer.sources.length);
		if (has_stacks)
			tally_packed_stacks_write(stacks, out);
		tally_packed_jits_write(packer.names->tasks, out);
	}
	if (packer.strings.failed || packer.functions.failed || packer.places.failed ||
	    packer.sources.failed || packer.declared.failed || code.failed || out->failed)
		result = -ENOMEM;
	if (places)
		*places = packer.asked;
	if (known)
		*known = packer.count;
	tally_buffer_release(&packer.strings);
	tally_buffer_release(&packer.functions);
	tally_buffer_release(&packer.places);
	tally_buffer_release(&packer.sources);
	tally_buffer_release(&packer.declared);
	tally_buffer_release(&code);
	tally_map_release(&packer.string_ids);
	free(packer.known);
	free(packer.other_names);
	free(packer.function_ids);
	return result;
}
