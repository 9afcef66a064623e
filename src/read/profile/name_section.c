/* Writes a profile's places with their names to tally's own section. */
#include "base/extremes.h"
#include "base/vector.h"
#include "naming/naming.h"
#include "naming/packed.h"
#include "perfdata/perfdata.h"
#include "profile/profile.h"
#include "symbol/lines.h"
#include "task/jit.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct known_place {
	uint32_t file; /* from tally_names_file() */
	const struct tally_place *place;
	const struct tally_place_name *name;
	/* the late place at this address, if its cause is known; NULL: none */
	const struct tally_place_name *late;
};

/* Late places as exact ones, with their names as such and as late places. */
struct named_places {
	struct { struct tally_place *items; size_t count, capacity; } places;
	struct { const struct tally_place_name **items; size_t count, capacity; } late;
	struct tally_place_name *names;
};

struct packer {
	struct tally_names *names;
	struct tally_place_name *other_names;
	struct named_places made; /* late places, as exact ones */
	struct known_place *known;
	size_t count, asked;
	struct tally_map string_ids; /* address of an interned text → id + 1 */
	uint32_t string_count;
	uint32_t *function_ids; /* by index of the names' function: id + 1 */
	uint32_t function_count;
	struct tally_buffer strings, functions, places, sources, declared, causes, partial;
};

/* Returns the id + 1 of a text, found by its address; the text must live as long as the packer.  0:
 * out of memory. */
static uint64_t pack_string(struct packer *packer, const char *text)
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

static void put_string(struct packer *packer, const char *text)
{
	uint64_t id = pack_string(packer, text);
	packer->strings.failed |= !id;
	tally_own_put_number(&packer->places, id - 1);
}

/* Parts 7, 8 and 11: source files that tell functions of one name apart, files that declare
 * functions, and files that objects lack. */
static void put_text(struct packer *packer, struct tally_buffer *part, uint32_t id, uint32_t text)
{
	if (text == TALLY_STRING_NONE)
		return;
	uint64_t string = pack_string(packer, tally_strings_text(&packer->names->strings, text));
	packer->strings.failed |= !string;
	tally_own_put_number(part, id);
	tally_own_put_number(part, string - 1);
}

/* Returns the id of a function of the names. */
static uint32_t pack_function(struct packer *packer, uint32_t number)
{
	const struct tally_strings *strings = &packer->names->strings;
	const struct tally_function *function = &packer->names->functions.items[number];
	if (!packer->function_ids[number]) {
		uint64_t name = 0;
		if (function->name != TALLY_STRING_NONE)
			name = pack_string(packer, tally_strings_text(strings, function->name));
		uint64_t object = pack_string(packer,
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

/* Writes the code of the functions with most samples to tally's own section.
 *
 * Annotating a function on another machine takes its bytes, their source lines and the names of the
 * functions that it calls.  Nothing is disassembled here, since that would need libLLVM on every
 * machine that records.  Instead, each byte gets its line; the bytes of an instruction agree.  And
 * every four bytes that could be the distance to a symbol are taken for one.  If they are not part
 * of a call, this names a target that nothing refers to, which does no harm.
 */

enum { CODE_BYTES_MAX = 256 << 10, HOT_PER_MILLE = 5, SAMPLES_MIN = 2 };

struct hot_code {
	struct tally_hot_function hot;
	uint32_t id;  /* index of the packed function */
	double share; /* its largest share of an event */
	struct tally_function_code code;
};

struct code_packer {
	struct packer *packer;
	struct tally_profile *profile;
	struct {
		struct hot_code *items;
		size_t count, capacity;
	} hot;
	struct tally_buffer *out, *around; /* of parts 6 and 9 */
};

/* ---- which functions ----------------------------------------------------- */

static double share_of(const struct tally_annotation_weight *part, uint64_t samples,
		       uint64_t period)
{
	if (period)
		return (double)part->period / (double)period;
	if (samples)
		return (double)part->samples / (double)samples;
	return 0;
}

static int add_event(struct code_packer *self, struct tally_map *index, uint32_t event)
{
	struct tally_hot_functions all = { 0 };
	struct tally_error err = TALLY_ERROR_NONE;
	uint64_t samples, period;
	tally_profile_totals(self->profile, event, &samples, &period);
	int result = 0;
	if (samples)
		result = tally_hot_functions_find(self->profile, event,
						  &(struct tally_function_choice){ 0 }, &all, &err);
	for (size_t i = 0; !result && i < all.count; i++) {
		double share = share_of(&all.items[i].weight, samples, period);
		bool is_own = all.items[i].function == all.items[i].symbol;
		bool is_known = self->packer->names->functions.items[all.items[i].function].start !=
				UINT64_MAX;
		if (!is_own || !is_known || share * 1000 < HOT_PER_MILLE ||
		    all.items[i].weight.samples < SAMPLES_MIN)
			continue;
		bool added;
		uint64_t *slot = tally_map_put(index, all.items[i].function, &added);
		struct hot_code hot = { .hot = all.items[i], .share = share };
		if (!slot || (added && tally_vector_push(&self->hot, hot) < 0)) {
			result = -ENOMEM;
		} else if (added) {
			*slot = self->hot.count - 1;
		} else if (share > self->hot.items[*slot].share) {
			self->hot.items[*slot].share = share;
		}
	}
	tally_vector_release(&all);
	/* no error: samples without addresses have no functions */
	if (result == -ENOMEM)
		return result;
	return 0;
}

static int hotter_first(const void *a_, const void *b_)
{
	const struct hot_code *a = a_, *b = b_;
	int order = tally_compare_double(b->share, a->share);
	if (order)
		return order;
	return tally_compare_u64(a->hot.place, b->hot.place);
}

/* A reader computes a place's address from the function's start and the packed offset.  True if
 * this is the address in the file. */
static bool is_sound(const struct code_packer *self, const struct hot_code *hot)
{
	const struct tally_place *place = &self->profile->places.places.items[hot->hot.place];
	uint64_t address;
	return hot->code.size &&
	       tally_function_code_address(self->packer->names, &hot->code, place, &address) &&
	       address == hot->code.start + self->profile->names[hot->hot.place].offset;
}

static int find_code(struct code_packer *self)
{
	size_t kept = 0, total = 0;
	int result = 0;
	for (size_t i = 0; i < self->hot.count; i++) {
		struct hot_code *hot = &self->hot.items[i];
		const struct tally_place *place =
			&self->profile->places.places.items[hot->hot.place];
		if (!result)
			result = tally_function_code_find(self->packer->names, place, &hot->code);
		if (result || !is_sound(self, hot) || hot->code.size > CODE_BYTES_MAX - total) {
			tally_function_code_release(&hot->code);
			continue;
		}
		total += hot->code.size;
		hot->id = pack_function(self->packer, hot->hot.function);
		self->hot.items[kept++] = *hot;
	}
	self->hot.count = kept;
	return result;
}

/* ---- what is said of one ------------------------------------------------- */

static void put_code_string(struct code_packer *self, const char *text, struct tally_buffer *out)
{
	uint64_t id = 0;
	if (text)
		id = pack_string(self->packer, text);
	self->out->failed |= text && !id;
	tally_own_put_number(out, id);
}

/* Equal texts have equal addresses here, since all answers come from the same tables. */
static bool is_same_row(const struct tally_line_answer *a, const struct tally_line_answer *b)
{
	const struct tally_line_frame *x = a->frames, *y = b->frames;
	if (a->count != b->count || !a->count)
		return a->count == b->count;
	for (uint32_t i = 0; i + 1 < a->count; i++)
		if (x[i].function != y[i].function)
			return false;
	return x->file == y->file && x->line == y->line;
}

/* Writes the functions between the innermost one and the symbol. */
static void put_around(struct code_packer *self, const struct tally_line_answer *answer)
{
	if (answer->count < 2 || !answer->frames->function)
		return;
	tally_own_put_number(self->around, answer->count - 2);
	for (uint32_t i = 1; i + 1 < answer->count; i++)
		put_code_string(self, answer->frames[i].function, self->around);
}

static void put_rows(struct code_packer *self, const struct tally_line_answer *answers, size_t size)
{
	struct tally_buffer rows = { 0 };
	size_t count = 0, last = 0;
	const char *main_file = NULL;
	for (size_t i = 0; i < size; i++) {
		const struct tally_line_answer *answer = &answers[i];
		const struct tally_line_frame *frame = answer->frames;
		if ((i && is_same_row(answer, &answers[i - 1])) || (!i && !answer->count))
			continue;
		tally_own_put_number(&rows, i - last);
		put_code_string(self, answer->count ? frame->file : NULL, &rows);
		tally_own_put_number(&rows, answer->count ? frame->line : 0);
		put_code_string(self, answer->count > 1 ? frame->function : NULL, &rows);
		put_around(self, answer);
		if (!main_file && answer->count)
			main_file = answer->frames[answer->count - 1].file;
		last = i;
		count++;
	}
	put_code_string(self, main_file, self->out);
	tally_own_put_number(self->out, count);
	tally_buffer_append(self->out, rows.bytes, rows.length);
	self->out->failed |= rows.failed;
	tally_buffer_release(&rows);
}

static int put_lines(struct code_packer *self, const struct hot_code *hot)
{
	const struct tally_function_code *code = &hot->code;
	const struct tally_place *place = &self->profile->places.places.items[hot->hot.place];
	uint64_t *addresses = malloc((code->size + 1) * sizeof(*addresses));
	struct tally_line_answer *answers = calloc(code->size + 1, sizeof(*answers));
	struct tally_line_frame *scratch = calloc(code->size + 1, sizeof(*scratch));
	int result = -ENOMEM;
	if (!addresses || !answers || !scratch)
		goto out;
	for (size_t i = 0; i < code->size; i++)
		addresses[i] = code->start + i;
	result = tally_function_code_lines(self->packer->names, code, place, addresses, code->size,
					   answers, scratch);
	if (!result)
		put_rows(self, answers, code->size);
out:
	free(addresses);
	free(answers);
	free(scratch);
	return result;
}

struct target {
	uint64_t address, offset;
	const char *name;
};

struct targets {
	struct target *items;
	size_t count, capacity;
};

/* Decodes the four bytes at `at` as a distance.  `goes`: it is a jump or call, whose target may be
 * anywhere in a function; otherwise only the start of a function is a target. */
static bool target_of(const struct tally_function_code *code, size_t at, uint64_t *address,
		      bool *goes)
{
	const uint8_t *bytes = code->bytes;
	uint32_t word;
	if (at + sizeof(word) > code->size || code->is_big_endian)
		return false;
	memcpy(&word, bytes + at, sizeof(word));
	if (code->machine == EM_AARCH64) { /* B, BL */
		*goes = true;
		*address = code->start + at + (uint64_t)((int64_t)((uint64_t)word << 38) >> 36);
		return at % 4 == 0 && (word & 0x7c000000) == 0x14000000;
	}
	*goes = (at >= 1 && (bytes[at - 1] & 0xfe) == 0xe8) ||
		(at >= 2 && bytes[at - 2] == 0x0f && (bytes[at - 1] & 0xf0) == 0x80);
	*address = code->start + at + sizeof(word) + (uint64_t)(int64_t)(int32_t)word;
	return code->machine == EM_X86_64 || code->machine == EM_386;
}

static int by_address(const void *a_, const void *b_)
{
	const struct target *a = a_, *b = b_;
	return tally_compare_u64(a->address, b->address);
}

static int find_targets(const struct code_packer *self, const struct hot_code *hot,
			struct targets *out)
{
	const struct tally_function_code *code = &hot->code;
	const struct tally_place *place = &self->profile->places.places.items[hot->hot.place];
	/* JIT code has only jumps and calls as targets */
	bool is_jit = tally_jits_of_file(self->packer->names->tasks, place->file);
	size_t kept = 0;
	for (size_t at = 0; at < code->size; at++) {
		struct target target;
		bool goes;
		if (!target_of(code, at, &target.address, &goes) || (!goes && is_jit) ||
		    (target.address > code->start && target.address < code->end))
			continue;
		target.name = tally_function_code_symbol(self->packer->names, code, place,
							 target.address, &target.offset);
		if (target.name && (goes || !target.offset) && tally_vector_push(out, target) < 0)
			return -ENOMEM;
	}
	if (out->count)
		qsort(out->items, out->count, sizeof(*out->items), by_address);
	for (size_t i = 0; i < out->count; i++)
		if (!kept || out->items[kept - 1].address != out->items[i].address)
			out->items[kept++] = out->items[i];
	out->count = kept;
	return 0;
}

static int put_targets(struct code_packer *self, const struct hot_code *hot)
{
	struct targets targets = { 0 };
	uint64_t last = 0;
	int result = find_targets(self, hot, &targets);
	tally_own_put_number(self->out, targets.count);
	for (size_t i = 0; !result && i < targets.count; i++) {
		tally_own_put_number(self->out, targets.items[i].address - last);
		tally_own_put_number(self->out, targets.items[i].offset);
		put_code_string(self, targets.items[i].name, self->out);
		last = targets.items[i].address;
	}
	tally_vector_release(&targets);
	return result;
}

static int put_code(struct code_packer *self, const struct hot_code *hot)
{
	const struct tally_function_code *code = &hot->code;
	tally_own_put_number(self->out, hot->id);
	tally_own_put_number(self->out, code->start);
	tally_own_put_number(self->out, code->size);
	tally_own_put_step(self->out, code->shown);
	tally_own_put_number(self->out, code->machine);
	tally_own_put_number(self->out,
			     (uint64_t)code->is_64bit | (uint64_t)code->is_big_endian << 1);
	tally_buffer_append(self->out, code->bytes, code->size);
	int result = put_lines(self, hot);
	if (result)
		return result;
	return put_targets(self, hot);
}

static int by_id(const void *a_, const void *b_)
{
	const struct hot_code *a = a_, *b = b_;
	return tally_compare_u64(a->id, b->id);
}

/* Writes part 6, the code of the functions with most samples, as far as it is found here, and part
 * 9, what was inlined there.  Returns 0 or -ENOMEM. */
static int pack_code(struct packer *packer, struct tally_profile *profile, struct tally_buffer *out,
		     struct tally_buffer *around)
{
	struct code_packer self = {
		.packer = packer, .profile = profile, .out = out, .around = around
	};
	struct tally_map index = { 0 };
	size_t events;
	int result = 0;
	tally_perfdata_events(profile->recording->data, &events);
	for (uint32_t event = 0; event < events; event++) {
		result = add_event(&self, &index, event);
		if (result)
			goto out;
	}
	if (!self.hot.count)
		goto out;
	qsort(self.hot.items, self.hot.count, sizeof(*self.hot.items), hotter_first);
	result = find_code(&self);
	if (result)
		goto out;
	qsort(self.hot.items, self.hot.count, sizeof(*self.hot.items), by_id);
	for (size_t i = 0; !result && i < self.hot.count; i++)
		result = put_code(&self, &self.hot.items[i]);
out:
	for (size_t i = 0; i < self.hot.count; i++)
		tally_function_code_release(&self.hot.items[i].code);
	tally_vector_release(&self.hot);
	tally_map_release(&index);
	return result;
}

/* --- places -------------------------------------------------------------------- */

static void put_frames(struct packer *packer, const struct tally_place_name *name,
		       struct tally_buffer *out)
{
	const struct tally_names *names = packer->names;
	for (uint32_t i = 0; i < name->count; i++) {
		const struct tally_place_frame *frame = &names->frames.items[name->first + i];
		uint64_t file = 0;
		tally_own_put_number(out, pack_function(packer, frame->function));
		if (frame->file != TALLY_STRING_NONE)
			file = pack_string(packer,
					   tally_strings_text(&names->strings, frame->file));
		tally_own_put_number(out, file);
		tally_own_put_number(out, frame->line);
	}
}

static void put_build_id(struct packer *packer, uint32_t id)
{
	const struct tally_build_id build_id = tally_names_build_id(packer->names, id);
	tally_own_put_number(&packer->places, build_id.size);
	tally_buffer_append(&packer->places, build_id.bytes, build_id.size);
}

/* Writes the object that the first `count` places are in, and these places. */
static void put_object(struct packer *packer, const struct known_place *first, size_t count)
{
	static const struct tally_mapped_file nothing;
	uint32_t id = first->file;
	bool is_kernel = id == TALLY_FILE_KERNEL;
	const struct tally_mapped_file *file = &nothing;
	const char *path = "[kernel.kallsyms]";
	struct tally_buffer *out = &packer->places;
	uint64_t address = 0;
	if (!is_kernel) {
		file = &packer->names->tasks->files.items[id];
		path = tally_tasks_path(packer->names->tasks, id);
	}
	tally_own_put_number(out, is_kernel + (file->origin ? TALLY_PACKED_INHERITED : 0u));
	put_string(packer, path);
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
		put_frames(packer, name, out);
		address = place->address;
	}
}

static int by_file_and_address(const void *a_, const void *b_)
{
	const struct known_place *a = a_, *b = b_;
	if (a->file != b->file)
		return tally_compare_u64(a->file, b->file);
	if (a->place->address != b->place->address)
		return tally_compare_u64(a->place->address, b->place->address);
	return (int)a->place->before - (int)b->place->before;
}

/* True if the place has a name, or its file's symbols could be searched for one.  Other places are
 * left out: a reader may have the file, and can name them. */
static bool is_known(struct packer *packer, uint32_t file, const struct tally_place_name *name,
		     const struct tally_place *place)
{
	const struct tally_names *names = packer->names;
	const struct tally_place_frame *frame = &names->frames.items[name->first + name->count - 1];
	if (names->functions.items[frame->function].name != TALLY_STRING_NONE ||
	    tally_names_recorded_place(packer->names, place))
		return true;
	return tally_names_has_symbols(packer->names, file);
}

/* Places of the kernel may come from several of its mappings, or from none.  They all belong to one
 * object, so equal ones are dropped. */
static void drop_doubles(struct packer *packer)
{
	size_t kept = 0;
	for (size_t i = 0; i < packer->count; i++) {
		if (!kept || by_file_and_address(&packer->known[kept - 1], &packer->known[i]))
			packer->known[kept++] = packer->known[i];
		else if (packer->known[i].late)
			packer->known[kept - 1].late = packer->known[i].late;
	}
	packer->asked -= packer->count - kept;
	packer->count = kept;
}

static void choose(struct packer *packer, const struct tally_place *places, size_t count,
		   const struct tally_place_name *names, const struct tally_place_name **late)
{
	for (size_t i = 0; i < count; i++) {
		const struct tally_place *place = &places[i];
		uint32_t file = tally_names_file(packer->names, place);
		if (place->is_late) /* it is in `made` */
			continue;
		packer->asked += file != TALLY_FILE_NONE;
		if (file != TALLY_FILE_NONE && is_known(packer, file, &names[i], place))
			packer->known[packer->count++] = (struct known_place){
				file, place, &names[i], late ? late[i] : NULL
			};
	}
}

/* Late places are packed as exact ones, which `script` shows; part 10 has what differs. */
static int make_exact_places(struct packer *packer, const struct tally_profile *profile)
{
	struct named_places *made = &packer->made;
	for (size_t i = 0; i < profile->places.places.count; i++) {
		struct tally_place place = profile->places.places.items[i];
		const struct tally_place_name *name = &profile->names[i];
		if (!place.is_late)
			continue;
		place.is_late = false;
		if (tally_vector_push(&made->places, place) < 0 ||
		    tally_vector_push(&made->late, name->is_charged ? name : NULL) < 0)
			return -ENOMEM;
	}
	made->names = malloc((made->places.count + 1) * sizeof(*made->names));
	if (!made->names)
		return -ENOMEM;
	return tally_names_resolve(packer->names, made->places.items, made->places.count,
				   made->names);
}

static int choose_places(struct packer *packer, const struct tally_profile *profile,
			 const struct tally_place_table *others)
{
	const struct tally_place_table none = { 0 };
	if (!others)
		others = &none;
	size_t other_count = others->places.count;
	if (make_exact_places(packer, profile) < 0)
		return -ENOMEM;
	packer->other_names = malloc((other_count + 1) * sizeof(*packer->other_names));
	packer->known = malloc((profile->places.places.count + other_count +
				packer->made.places.count + 1) *
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
	choose(packer, profile->places.places.items, profile->places.places.count, profile->names,
	       NULL);
	choose(packer, others->places.items, other_count, packer->other_names, NULL);
	choose(packer, packer->made.places.items, packer->made.places.count, packer->made.names,
	       packer->made.late.items);
	qsort(packer->known, packer->count, sizeof(*packer->known), by_file_and_address);
	drop_doubles(packer);
	return 0;
}

/* Part 10: late places whose causes are known. */
static void put_causes(struct packer *packer)
{
	size_t last = 0;
	for (size_t i = 0; i < packer->count; i++) {
		const struct tally_place_name *late = packer->known[i].late;
		if (!late)
			continue;
		tally_own_put_number(&packer->causes, i - last);
		tally_own_put_step(&packer->causes, (uint64_t)late->moved);
		tally_own_put_number(&packer->causes, late->count - 1);
		put_frames(packer, late, &packer->causes);
		last = i;
	}
}

static void put_places(struct packer *packer)
{
	for (size_t first = 0, end; first < packer->count; first = end) {
		end = first + 1;
		while (end < packer->count && packer->known[end].file == packer->known[first].file)
			end++;
		put_object(packer, &packer->known[first], end - first);
	}
}

static void put_partial(struct packer *packer)
{
	for (size_t i = 0; i < packer->names->gaps.partial.count; i++) {
		const struct tally_names_partial *partial = &packer->names->gaps.partial.items[i];
		uint64_t object = pack_string(packer, tally_strings_text(&packer->names->strings,
									 partial->object));
		packer->strings.failed |= !object;
		put_text(packer, &packer->partial, (uint32_t)object - 1, partial->companion);
	}
}

int tally_make_name_section(struct tally_profile *profile, const struct tally_place_table *others,
		     struct tally_buffer *out, size_t *places, size_t *known)
{
	struct packer packer = { .names = &profile->recording->names };
	const struct tally_packed_stacks *stacks = tally_recording_noted_stacks(profile->recording);
	struct tally_buffer code = { 0 }, around = { 0 };
	bool has_stacks = stacks && stacks->chains.count;
	int result = choose_places(&packer, profile, others);
	if (!result && (packer.count || has_stacks)) {
		put_places(&packer);
		put_causes(&packer);
		put_partial(&packer);
		result = pack_code(&packer, profile, &code, &around);
		tally_own_feature_begin(out);
		if (code.length)
			tally_own_feature_add(out, TALLY_OWN_CODE, code.bytes, code.length);
		if (around.length)
			tally_own_feature_add(out, TALLY_OWN_AROUND, around.bytes, around.length);
		tally_own_feature_add(out, TALLY_OWN_STRINGS, packer.strings.bytes,
				      packer.strings.length);
		tally_own_feature_add(out, TALLY_OWN_FUNCTIONS, packer.functions.bytes,
				      packer.functions.length);
		tally_own_feature_add(out, TALLY_OWN_PLACES, packer.places.bytes,
				      packer.places.length);
		if (packer.declared.length)
			tally_own_feature_add(out, TALLY_OWN_DECLARED, packer.declared.bytes,
					      packer.declared.length);
		if (packer.causes.length)
			tally_own_feature_add(out, TALLY_OWN_CAUSES, packer.causes.bytes,
					      packer.causes.length);
		if (packer.partial.length)
			tally_own_feature_add(out, TALLY_OWN_PARTIAL, packer.partial.bytes,
					      packer.partial.length);
		if (packer.sources.length)
			tally_own_feature_add(out, TALLY_OWN_SOURCES, packer.sources.bytes,
					      packer.sources.length);
		if (has_stacks)
			tally_packed_stacks_write(stacks, out);
		tally_packed_jits_write(packer.names->tasks, out);
	}
	if (packer.strings.failed || packer.functions.failed || packer.places.failed ||
	    packer.sources.failed || packer.declared.failed || packer.causes.failed ||
	    packer.partial.failed || code.failed || around.failed || out->failed)
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
	tally_buffer_release(&packer.causes);
	tally_buffer_release(&packer.partial);
	tally_buffer_release(&code);
	tally_buffer_release(&around);
	tally_vector_release(&packer.made.places);
	tally_vector_release(&packer.made.late);
	free(packer.made.names);
	tally_map_release(&packer.string_ids);
	free(packer.known);
	free(packer.other_names);
	free(packer.function_ids);
	return result;
}
