/* From a profile's rows to one function's instructions.
 *
 * The profile has its samples summed up by place: the samples in a function are the leaves of rows
 * whose symbol is that function.  The whole function is disassembled, not just the sampled
 * instructions, because a reader looks for where jumps go and what lies between.  Instructions of
 * x86 have no alignment, so they are decoded one after the other from the function's start.  Of a
 * function that was inlined, only its own instructions are kept, and of its symbol's samples only
 * those in it or in what was inlined into it.
 *
 * There are two kinds of addresses.  Names and lines are found by the symbols' addresses.  The
 * shown addresses differ from these for JIT code and the kernel (naming.h, `shown`).
 */
#include "report/report.h"

#include "abi/abi.h"
#include "base/vector.h"
#include "naming/naming.h"
#include "profile/profile.h"
#include "symbol/lines.h"
#include "symbol/symbol.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct spot {
	uint64_t address; /* as shown */
	uint32_t place;
	/* the address is a cause that only this file found: its line isn't the place's */
	bool is_charged_here;
	struct tally_annotation_weight weight;
};

struct maker {
	struct tally_profile *profile;
	struct tally_names *names;
	const struct tally_hot_function *hot;
	const struct tally_annotation_options *options;
	struct tally_annotation *out;
	struct tally_function_code code;
	struct { struct spot *items; size_t count, capacity; } spots;
	struct tally_map line_index; /* file and line → index into `lines` */
	struct tally_map path_index; /* both lines → index into `paths` */
	const struct tally_place *place; /* one place of the function */
};

static double error_of(const struct tally_annotation_weight *part,
		       const struct tally_annotation_weight *whole)
{
	const struct tally_share share = {
		.part = (double)(whole->period ? part->period : part->samples),
		.whole = (double)(whole->period ? whole->period : whole->samples),
		.part_samples = part->samples, .samples = whole->samples,
	};
	return tally_share_error(&share);
}

double tally_annotation_error(const struct tally_annotation *annotation,
			      const struct tally_annotation_weight *weight)
{
	return error_of(weight, &annotation->weight);
}

double tally_annotation_total_error(const struct tally_annotation *annotation)
{
	return error_of(&annotation->weight, &annotation->total);
}

double tally_annotation_percent(const struct tally_annotation *annotation,
				const struct tally_annotation_weight *weight)
{
	if (annotation->weight.period)
		return 100 * (double)weight->period / (double)annotation->weight.period;
	if (annotation->weight.samples)
		return 100 * (double)weight->samples / (double)annotation->weight.samples;
	return 0;
}

double tally_annotation_total_percent(const struct tally_annotation *annotation)
{
	if (annotation->total.period)
		return 100 * (double)annotation->weight.period / (double)annotation->total.period;
	if (annotation->total.samples)
		return 100 * (double)annotation->weight.samples /
		       (double)annotation->total.samples;
	return 0;
}

/* ---- samples ------------------------------------------------------------- */

static int by_address(const void *a_, const void *b_)
{
	const struct spot *a = a_, *b = b_;
	return a->address < b->address ? -1 : a->address > b->address;
}

/* Returns the number of the annotated function's frame at a place, the outermost one; UINT32_MAX:
 * it is not there. */
static uint32_t frame_of(const struct maker *maker, uint32_t place)
{
	const struct tally_place_name *name = &maker->profile->names[place];
	if (tally_profile_symbol(maker->profile, place) != maker->hot->symbol)
		return UINT32_MAX;
	for (uint32_t left = name->count; left; left--)
		if (maker->names->frames.items[name->first + left - 1].function ==
		    maker->hot->function)
			return left - 1;
	return UINT32_MAX;
}

static void sort_spots(struct maker *maker)
{
	if (maker->spots.count)
		qsort(maker->spots.items, maker->spots.count, sizeof(*maker->spots.items),
		      by_address);
}

/* Moves the spots of late places to what is charged.  Naming leaves places without lines where they
 * are, and those that an older version packed: their causes are found here. */
static int charge(struct maker *maker)
{
	const struct tally_profile *profile = maker->profile;
	struct { struct tally_late *items; size_t count, capacity; } late = { 0 };
	int result = 0;
	for (size_t i = 0; !result && i < maker->spots.count; i++) {
		uint32_t place = maker->spots.items[i].place;
		struct tally_late one = { .address = maker->spots.items[i].address -
						     maker->code.shown,
					  .place = &profile->places.places.items[place],
					  .index = (uint32_t)i };
		if (profile->places.places.items[place].is_late &&
		    !profile->names[place].is_charged)
			result = tally_vector_push(&late, one);
	}
	if (!result && late.count)
		result = tally_causes_in(&maker->code, late.items, late.count);
	for (size_t i = 0; !result && i < late.count; i++) {
		struct spot *spot = &maker->spots.items[late.items[i].index];
		spot->address += (uint64_t)late.items[i].moved;
		spot->is_charged_here = late.items[i].moved;
	}
	for (size_t i = 0; i < maker->spots.count; i++)
		maker->spots.items[i].address +=
			(uint64_t)profile->names[maker->spots.items[i].place].moved;
	sort_spots(maker);
	tally_vector_release(&late);
	return result;
}

static int gather_spots(struct maker *maker, uint32_t event)
{
	struct tally_annotation_weight *weights = tally_leaf_weights(maker->profile, event);
	int result = weights ? 0 : -ENOMEM;
	for (uint32_t place = 0; !result && place < maker->profile->places.places.count; place++) {
		if (!weights[place].samples || frame_of(maker, place) == UINT32_MAX)
			continue;
		struct spot spot = { .place = place, .weight = weights[place] };
		if (!tally_function_code_address(maker->names, &maker->code,
						 &maker->profile->places.places.items[place],
						 &spot.address))
			spot.address = maker->profile->places.places.items[place].address;
		spot.address += maker->code.shown;
		result = tally_vector_push(&maker->spots, spot);
	}
	free(weights);
	sort_spots(maker);
	return result ? result : charge(maker);
}

/* ---- lines --------------------------------------------------------------- */

static uint32_t line_of(struct maker *maker, const char *file, uint32_t number)
{
	struct tally_annotation *out = maker->out;
	bool added;
	if (!file || !number)
		return UINT32_MAX;
	uint32_t id = tally_strings_intern(&out->strings, file);
	if (id == TALLY_STRING_NONE)
		return UINT32_MAX;
	uint64_t *slot = tally_map_put(&maker->line_index, (uint64_t)id << 32 | number, &added);
	if (!slot)
		return UINT32_MAX;
	if (added) {
		*slot = out->lines.count;
		if (tally_vector_push(&out->lines, (struct tally_annotated_line){
							   .file = id, .line = number }) < 0)
			return UINT32_MAX;
	}
	return (uint32_t)*slot;
}

static void weigh_path(struct maker *maker, uint32_t own, uint32_t inner,
		       const struct tally_annotation_weight *weight)
{
	struct tally_annotation *out = maker->out;
	bool added;
	uint64_t *slot = tally_map_put(&maker->path_index, (uint64_t)own << 32 | inner, &added);
	const struct tally_annotated_path path = { .own = own, .inner = inner };
	if (!slot || (added && tally_vector_push(&out->paths, path) < 0))
		return;
	if (added)
		*slot = out->paths.count - 1;
	tally_annotation_add(&out->paths.items[*slot].weight, weight);
}

/* Weighs the line of the innermost code, and the line of the annotated function that leads
 * there. */
static void weigh_line(struct maker *maker, const char *file, uint32_t number, const char *own_file,
		       uint32_t own_number, const struct tally_annotation_weight *weight)
{
	uint32_t inner = line_of(maker, file, number),
		 own = line_of(maker, own_file, own_number);
	if (inner != UINT32_MAX)
		tally_annotation_add(&maker->out->lines.items[inner].weight, weight);
	if (own != UINT32_MAX && own != inner)
		tally_annotation_add(&maker->out->lines.items[own].inlined, weight);
	inner = inner == UINT32_MAX ? own : inner;
	if (inner != UINT32_MAX)
		weigh_path(maker, own, inner, weight);
}

static const char *file_of(const struct maker *maker, const struct tally_place_frame *frame)
{
	if (frame->file == TALLY_STRING_NONE)
		return NULL;
	return tally_strings_text(&maker->names->strings, frame->file);
}

/* Returns the frame of the annotated function; NULL: the code is another function's. */
static const struct tally_line_frame *own_frame(const struct maker *maker,
						const struct tally_line_answer *answer)
{
	const struct tally_function *function =
		&maker->names->functions.items[maker->hot->function];
	if (!maker->out->inlined_into)
		return answer->count ? &answer->frames[answer->count - 1] : NULL;
	for (uint32_t left = answer->count; left-- > 1;) {
		const struct tally_line_frame *frame = &answer->frames[left - 1];
		if (frame->function && function->symbol != TALLY_STRING_NONE &&
		    !strcmp(frame->function,
			    tally_strings_text(&maker->names->strings, function->symbol)))
			return frame;
	}
	return NULL;
}

/* Weighs the lines of the spots whose causes were found here.  Returns 0 or -ENOMEM. */
static int weigh_charged_lines(struct maker *maker)
{
	size_t count = 0;
	uint64_t *addresses = malloc((maker->spots.count + 1) * sizeof(*addresses));
	struct tally_line_answer *answers = calloc(maker->spots.count + 1, sizeof(*answers));
	struct tally_line_frame *scratch = calloc(2 * maker->spots.count + 1, sizeof(*scratch));
	int result = addresses && answers && scratch ? 0 : -ENOMEM;
	for (size_t i = 0; !result && i < maker->spots.count; i++)
		if (maker->spots.items[i].is_charged_here)
			addresses[count++] = maker->spots.items[i].address - maker->code.shown;
	if (!result)
		result = tally_function_code_lines(maker->names, &maker->code, maker->place,
						   addresses, count, answers, scratch);
	for (size_t i = 0, at = 0; !result && i < maker->spots.count; i++) {
		const struct spot *spot = &maker->spots.items[i];
		if (!spot->is_charged_here)
			continue;
		const struct tally_line_answer *answer = &answers[at++];
		const struct tally_line_frame *own = own_frame(maker, answer);
		if (own)
			weigh_line(maker, answer->frames->file, answer->frames->line, own->file,
				   own->line, &spot->weight);
	}
	free(addresses);
	free(answers);
	free(scratch);
	return result;
}

/* Sums samples by line, using the names of the profile's places.  A recording may carry these even
 * if the binary is not here. */
static int weigh_lines(struct maker *maker)
{
	for (size_t i = 0; i < maker->spots.count; i++) {
		const struct spot *spot = &maker->spots.items[i];
		const struct tally_place_name *name = &maker->profile->names[spot->place];
		const struct tally_place_frame *inner = &maker->names->frames.items[name->first];
		const struct tally_place_frame *outer = inner + frame_of(maker, spot->place);
		if (!spot->is_charged_here)
			weigh_line(maker, file_of(maker, inner), inner->line, file_of(maker, outer),
				   outer->line, &spot->weight);
		if (outer->file != TALLY_STRING_NONE && maker->out->main_file == TALLY_STRING_NONE)
			maker->out->main_file = tally_strings_intern(
				&maker->out->strings,
				tally_strings_text(&maker->names->strings, outer->file));
	}
	return weigh_charged_lines(maker);
}

static void take_answer(struct maker *maker, const struct tally_line_answer *answer,
			struct tally_annotated_instruction *instruction)
{
	struct tally_annotation *out = maker->out;
	const struct tally_line_frame *frame = answer->frames, *own = own_frame(maker, answer);
	instruction->is_other = out->inlined_into && !own;
	if (!answer->count || instruction->is_other)
		return;
	instruction->line = line_of(maker, frame->file, frame->line);
	instruction->own = own ? line_of(maker, own->file, own->line) : UINT32_MAX;
	if (instruction->line != UINT32_MAX)
		out->lines.items[instruction->line].instructions++;
	if (answer->count > 1 && frame != own && frame->function) {
		char *readable = NULL;
		if (!maker->names->options.keep_mangled)
			readable = tally_demangle(frame->function);
		instruction->inlined = tally_strings_intern(&out->strings,
							    readable ? readable : frame->function);
		free(readable);
	}
	if (own->file && out->main_file == TALLY_STRING_NONE)
		out->main_file = tally_strings_intern(&out->strings, own->file);
}

static int find_lines(struct maker *maker)
{
	struct tally_annotation *out = maker->out;
	size_t count = out->instructions.count;
	uint64_t *addresses = malloc((count + 1) * sizeof(*addresses));
	struct tally_line_answer *answers = calloc(count + 1, sizeof(*answers));
	struct tally_line_frame *scratch = calloc(count + 1, sizeof(*scratch));
	int result = addresses && answers && scratch ? 0 : -ENOMEM;
	for (size_t i = 0; !result && i < count; i++)
		addresses[i] = out->instructions.items[i].address - maker->code.shown;
	if (!result)
		result = tally_function_code_lines(maker->names, &maker->code, maker->place,
						   addresses, count, answers, scratch);
	for (size_t i = 0; !result && i < count; i++)
		take_answer(maker, &answers[i], &out->instructions.items[i]);
	free(addresses);
	free(answers);
	free(scratch);
	return result;
}

/* ---- instructions -------------------------------------------------------- */

/* Finds the name of an address and the offset from its start.  Returns a text that the caller
 * frees, or NULL when not known. */
static char *name_at(struct maker *maker, uint64_t address, uint64_t *offset)
{
	const char *name = tally_function_code_symbol(maker->names, &maker->code, maker->place,
						      address - maker->code.shown, offset);
	char *readable = name && !maker->names->options.keep_mangled ? tally_demangle(name) : NULL;
	if (readable || !name)
		return readable;
	return strdup(name);
}

/* Returns "memcpy" or "main+0x12" as a string id.  An address that is not jumped to or called gets
 * a name only if a function begins there: the table has no symbols of data, and what lies far
 * behind a function is not part of it. */
static uint32_t name_address(struct maker *maker, uint64_t address, bool goes)
{
	uint64_t offset = 0;
	char text[512], *name = name_at(maker, address, &offset);
	const char *version = name ? strstr(name, "@@") : NULL;
	bool is_said = name && (goes || !offset);
	if (is_said)
		snprintf(text, sizeof(text), offset ? "%.*s+0x%llx" : "%.*s",
			 version && version > name ? (int)(version - name) : 480, name,
			 (unsigned long long)offset);
	free(name);
	return is_said ? tally_strings_intern(&maker->out->strings, text) : TALLY_STRING_NONE;
}

static int disassemble(struct maker *maker, struct tally_disassembler *disassembler)
{
	const struct tally_function_code *code = &maker->code;
	struct tally_annotation *out = maker->out;
	struct tally_instruction one;
	for (size_t at = 0; at < code->size; at += one.size) {
		uint64_t address = code->start + code->shown + at;
		tally_disassemble(disassembler, code->bytes + at, code->size - at, address, &one);
		bool goes = one.kind == TALLY_INSTRUCTION_JUMP ||
			    one.kind == TALLY_INSTRUCTION_CALL;
		uint64_t asked = goes ? one.target : one.reference;
		bool is_inside = goes && asked >= out->start && asked < out->end;
		bool is_named = asked && !(is_inside && asked != out->start);
		struct tally_annotated_instruction instruction = {
			.address = address,
			.size = one.size,
			.kind = one.kind,
			.target = goes ? one.target : one.reference,
			.text = tally_strings_add(&out->strings, one.text, one.operand),
			.destination = UINT32_MAX,
			.line = UINT32_MAX,
			.own = UINT32_MAX,
			.inlined = TALLY_STRING_NONE,
			.target_name = TALLY_STRING_NONE,
		};
		if (is_named)
			instruction.target_name = name_address(maker, asked, goes);
		if (instruction.text == TALLY_STRING_NONE ||
		    tally_vector_push(&out->instructions, instruction) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Returns the index of the instruction that holds an address; UINT32_MAX: none. */
static uint32_t instruction_at(const struct tally_annotation *annotation, uint64_t address)
{
	size_t low = 0, high = annotation->instructions.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct tally_annotated_instruction *there =
			&annotation->instructions.items[middle];
		if (address < there->address)
			high = middle;
		else if (address - there->address >= there->size)
			low = middle + 1;
		else
			return (uint32_t)middle;
	}
	return UINT32_MAX;
}

static void link_jumps(struct tally_annotation *out)
{
	for (size_t i = 0; i < out->instructions.count; i++) {
		struct tally_annotated_instruction *from = &out->instructions.items[i];
		if (from->kind != TALLY_INSTRUCTION_JUMP)
			continue;
		uint32_t to = instruction_at(out, from->target);
		if (to == UINT32_MAX || out->instructions.items[to].address != from->target)
			continue; /* into another function, or into the middle of an instruction */
		from->destination = to;
		out->instructions.items[to].label = 1;
	}
	for (size_t i = 0; i < out->instructions.count; i++)
		if (out->instructions.items[i].label)
			out->instructions.items[i].label = ++out->labels;
}

static void weigh_instructions(struct maker *maker)
{
	for (size_t i = 0; i < maker->spots.count; i++) {
		uint32_t at = instruction_at(maker->out, maker->spots.items[i].address);
		if (at != UINT32_MAX)
			tally_annotation_add(&maker->out->instructions.items[at].weight,
					     &maker->spots.items[i].weight);
	}
}

/* Leaves out the instructions of other functions that have no samples of this one. */
static void keep_own(struct tally_annotation *out)
{
	size_t kept = 0;
	uint32_t left_out = 0;
	for (size_t i = 0; i < out->instructions.count; i++) {
		struct tally_annotated_instruction one = out->instructions.items[i];
		if (one.is_other && !one.weight.samples) {
			left_out++;
			continue;
		}
		one.left_out = left_out;
		left_out = 0;
		out->instructions.items[kept++] = one;
	}
	out->instructions.count = kept;
}

static int add_instructions(struct maker *maker, struct tally_error *err)
{
	struct tally_function_code *code = &maker->code;
	struct tally_annotation *out = maker->out;
	struct tally_disassembler *disassembler;
	struct tally_error why = TALLY_ERROR_NONE;
	if (!code->size) {
		snprintf(out->missing, sizeof(out->missing), "%s", code->missing);
		snprintf(out->hint, sizeof(out->hint), "%s", code->hint);
		return 0;
	}
	if (tally_disassembler_open(code->machine, code->is_64bit, code->is_big_endian,
				    maker->options->is_intel, &disassembler, &why) < 0) {
		snprintf(out->missing, sizeof(out->missing), "%s", why.message);
		snprintf(out->hint, sizeof(out->hint), "%s", why.hint);
		return why.code == -ENOMEM ? tally_error_set(err, -ENOMEM, "out of memory") : 0;
	}
	int result = disassemble(maker, disassembler);
	tally_disassembler_close(disassembler);
	if (!result)
		result = find_lines(maker);
	if (result < 0)
		return tally_error_set(err, -ENOMEM, "out of memory");
	weigh_instructions(maker);
	keep_own(out);
	link_jumps(out);
	return 0;
}

/* ---- all of it ----------------------------------------------------------- */

struct line_order {
	const struct tally_strings *strings;
	const struct tally_annotated_line *lines;
	uint32_t main_file;
};

/* The function's own file comes first. */
static int by_file_and_line(const void *a_, const void *b_, void *order_)
{
	const struct line_order *order = order_;
	const struct tally_annotated_line *a = &order->lines[*(const uint32_t *)a_],
					  *b = &order->lines[*(const uint32_t *)b_];
	if (a->file != b->file && (a->file == order->main_file || b->file == order->main_file))
		return a->file == order->main_file ? -1 : 1;
	if (a->file != b->file)
		return strcmp(tally_strings_text(order->strings, a->file),
			      tally_strings_text(order->strings, b->file));
	return a->line < b->line ? -1 : a->line > b->line;
}

static int heavier_first(const void *a_, const void *b_)
{
	const struct tally_annotated_path *a = a_, *b = b_;
	if (a->weight.period != b->weight.period)
		return a->weight.period > b->weight.period ? -1 : 1;
	if (a->weight.samples != b->weight.samples)
		return a->weight.samples > b->weight.samples ? -1 : 1;
	if (a->inner != b->inner)
		return a->inner < b->inner ? -1 : 1;
	return a->own < b->own ? -1 : a->own > b->own;
}

static int sort_lines(struct tally_annotation *out)
{
	size_t count = out->lines.count;
	uint32_t *order = malloc((count + 1) * sizeof(*order)),
		 *where = malloc((count + 1) * sizeof(*where));
	struct tally_annotated_line *sorted = malloc((count + 1) * sizeof(*sorted));
	struct line_order context = { &out->strings, out->lines.items, out->main_file };
	int result = -ENOMEM;
	if (!order || !where || !sorted)
		goto out;
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	qsort_r(order, count, sizeof(*order), by_file_and_line, &context);
	for (uint32_t i = 0; i < count; i++) {
		sorted[i] = out->lines.items[order[i]];
		where[order[i]] = i;
	}
	for (size_t i = 0; i < out->instructions.count; i++) {
		struct tally_annotated_instruction *one = &out->instructions.items[i];
		one->line = one->line == UINT32_MAX ? UINT32_MAX : where[one->line];
		one->own = one->own == UINT32_MAX ? UINT32_MAX : where[one->own];
	}
	for (size_t i = 0; i < out->paths.count; i++) {
		struct tally_annotated_path *path = &out->paths.items[i];
		path->inner = where[path->inner];
		path->own = path->own == UINT32_MAX ? UINT32_MAX : where[path->own];
	}
	if (out->paths.count)
		qsort(out->paths.items, out->paths.count, sizeof(*out->paths.items),
		      heavier_first);
	if (count)
		memcpy(out->lines.items, sorted, count * sizeof(*sorted));
	result = 0;
out:
	free(order);
	free(where);
	free(sorted);
	return result;
}

static enum tally_sample_aim aim_of(const struct tally_recording *recording,
				    const struct tally_attr *attr)
{
	if (!tally_recording_has_skid(recording, attr))
		return TALLY_AIM_EXACT;
	return tally_attr_is_clock(attr) ? TALLY_AIM_NEXT : TALLY_AIM_SKID;
}

/* True if a spot was, or could have been, charged to another instruction. */
static bool has_charged(const struct maker *maker)
{
	if (tally_code_has_causes(maker->code.machine, maker->code.is_big_endian) &&
	    maker->code.size)
		return true;
	for (size_t i = 0; i < maker->spots.count; i++)
		if (maker->profile->names[maker->spots.items[i].place].is_charged)
			return true;
	return false;
}

static void describe(struct maker *maker, uint32_t event)
{
	struct tally_annotation *out = maker->out;
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(
		maker->profile->recording->data, &count);
	const struct tally_attr *attr = &events[event].attr;
	out->function = tally_names_plain_text(maker->names, maker->hot->function);
	out->object = tally_names_object(maker->names, maker->hot->function);
	out->event = events[event].name;
	out->is_saturated = tally_recording_is_saturated(maker->profile->recording, event);
	if (maker->hot->symbol != maker->hot->function)
		out->inlined_into = tally_names_plain_text(maker->names, maker->hot->symbol);
	out->aim = aim_of(maker->profile->recording, attr);
	out->is_charged = out->aim != TALLY_AIM_EXACT && !maker->names->sources.raw_addresses &&
			  has_charged(maker);
	out->weight = maker->hot->weight;
	out->self = maker->hot->self;
	out->start = maker->code.start + maker->code.shown;
	out->end = maker->code.end + maker->code.shown;
	out->object_time_s = maker->code.file_time_s;
	out->is_rebuilt = maker->code.is_rebuilt;
	out->poked = maker->code.poked;
	out->no_lines = maker->code.no_lines;
	tally_profile_totals(maker->profile, event, &out->total.samples, &out->total.period);
	uint64_t all = out->total.period ? out->total.period : out->total.samples;
	out->whole_self = all ? 100 * (double)maker->hot->whole_self / (double)all : 0;
}

int tally_annotation_make(struct tally_profile *profile, uint32_t event,
			  const struct tally_hot_function *hot,
			  const struct tally_annotation_options *options,
			  struct tally_annotation *out, struct tally_error *err)
{
	struct maker maker = { .profile = profile,
			       .names = &profile->recording->names,
			       .hot = hot,
			       .options = options,
			       .out = out,
			       .place = &profile->places.places.items[hot->place] };
	*out = (struct tally_annotation){ .main_file = TALLY_STRING_NONE };
	int result = tally_function_code_find(maker.names, maker.place, &maker.code);
	if (!result)
		result = gather_spots(&maker, event);
	if (result < 0) {
		tally_error_set(err, result, "out of memory");
		goto out;
	}
	describe(&maker, event);
	if (weigh_lines(&maker) < 0) {
		result = tally_error_set(err, -ENOMEM, "out of memory");
		goto out;
	}
	if (!options->no_code)
		result = add_instructions(&maker, err);
	if (!result && sort_lines(out) < 0)
		result = tally_error_set(err, -ENOMEM, "out of memory");
out:
	tally_vector_release(&maker.spots);
	tally_map_release(&maker.line_index);
	tally_map_release(&maker.path_index);
	tally_function_code_release(&maker.code);
	return result;
}

void tally_annotation_release(struct tally_annotation *annotation)
{
	tally_vector_release(&annotation->instructions);
	tally_vector_release(&annotation->lines);
	tally_vector_release(&annotation->paths);
	tally_strings_release(&annotation->strings);
}
