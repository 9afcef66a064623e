/* Finds an object's sections with rules, and looks up rules in them.
 *
 * In an object without section headers, the program headers lead to .eh_frame_hdr, whose pointer
 * tells where .eh_frame begins.
 */
#include "unwind/unwind_internal.h"

#include "base/binary_search.h"
#include "base/vector.h"
#include "object/object.h"
#include "unwind/code_walk.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

static int add_index(struct tally_unwind_table *table, const struct tally_cfi_section *section,
		     const struct tally_cfi_section *linker)
{
	if (section->size == 0 || section->size > TALLY_CFI_SECTION_MAX)
		return 0;
	return tally_function_index_init(&table->indexes[table->index_count++], section, linker);
}

/* Finds the function that holds an address, in the first index that has it.  Returns that index, or
 * NULL. */
static struct tally_function_index *find_index(struct tally_unwind_table *table, uint64_t address,
					       struct tally_unwind_function *function)
{
	for (unsigned i = 0; i < table->index_count; i++) {
		struct tally_function_index *index = &table->indexes[i];
		size_t position;
		bool is_anew, is_found = tally_function_index_find(index, address, &position,
								   function, &is_anew);
		if (is_anew)
			tally_unwind_rules_renumber(&table->rules[i]);
		if (is_found)
			return index;
	}
	return NULL;
}

bool tally_unwind_table_function(struct tally_unwind_table *table, uint64_t address,
				 uint64_t *start, uint64_t *end)
{
	struct tally_unwind_function function;
	if (!find_index(table, address, &function))
		return false;
	*start = function.start;
	*end = function.start + function.size;
	return true;
}

/* ---- where code without rules belongs ------------------------------------ */

/* Finds where functions begin in the segment that holds the address.  Takes some ms for a MiB,
 * once. */
static void find_starts(struct tally_unwind_table *table, uint64_t address)
{
	const size_t most_bytes = 4 << 20;
	Elf *elf = tally_object_elf(table->object);
	size_t count, size;
	GElf_Phdr header;
	table->has_starts = true;
	if (!elf || elf_getphdrnum(elf, &count) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD ||
		    !(header.p_flags & PF_X) || address - header.p_vaddr >= header.p_filesz ||
		    header.p_filesz > most_bytes)
			continue;
		const uint8_t *code = tally_object_bytes_at(table->object, header.p_vaddr, &size);
		if (code) /* without memory: finds none */
			tally_code_starts_find(code, size, header.p_vaddr, &table->starts);
		return;
	}
}

struct piece {
	uint64_t start, end;
};

/* Narrows a piece around an address to one between functions with rules.  Overlapping functions, as
 * in hand-written assembly, are looked at one by one: those before the last are ignored. */
static void narrow_by_rules(struct tally_unwind_table *table, uint64_t address,
			    struct piece *piece)
{
	for (unsigned i = 0; i < table->index_count; i++) {
		struct tally_function_index *index = &table->indexes[i];
		struct tally_unwind_function function;
		size_t position;
		uint64_t start;
		bool has_below = tally_function_index_below(index, address, &position, &start);
		if (!has_below)
			position = SIZE_MAX; /* the next is the first */
		if (has_below && tally_function_index_at(index, position, &function)) {
			uint64_t end = function.start + function.size;
			if (end <= address && end > piece->start)
				piece->start = end;
		}
		uint64_t next = tally_function_index_next(index, position);
		if (next > address && next < piece->end)
			piece->end = next;
	}
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Without memory, finds only some. */
static void find_code_sections(struct tally_unwind_table *table)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr header;
	table->has_code_sections = true;
	while ((scn = elf_nextscn(tally_object_elf(table->object), scn)))
		if (gelf_getshdr(scn, &header) && header.sh_flags & SHF_EXECINSTR &&
		    tally_vector_push(&table->code_sections, header.sh_addr) < 0)
			break;
	if (table->code_sections.count)
		qsort(table->code_sections.items, table->code_sections.count,
		      sizeof(*table->code_sections.items), compare_addresses);
}

/* Finds the section, or else the segment, of code that holds an address. */
static bool find_code(struct tally_unwind_table *table, uint64_t address, struct piece *piece)
{
	const struct tally_segment *segment = tally_object_segment_at(table->object, address);
	if (!segment || !segment->is_executable)
		return false;
	if (!table->has_code_sections)
		find_code_sections(table);
	*piece = (struct piece){ segment->address, segment->address + segment->file_size };
	const uint64_t *starts = table->code_sections.items;
	size_t count = table->code_sections.count,
	       behind = tally_search(i, 0, count, starts[i] > address);
	if (behind && starts[behind - 1] > piece->start)
		piece->start = starts[behind - 1];
	if (behind < count && starts[behind] < piece->end)
		piece->end = starts[behind];
	return true;
}

/* Returns where functions begin in a piece: in its whole segment, whose calls tell most, or in a
 * part of the piece, if the segment is large.  NULL: unknown. */
static const struct tally_code_starts *starts_of(struct tally_unwind_table *table,
						 uint64_t address, const struct piece *piece)
{
	const uint64_t most_bytes = 4 << 20;
	size_t available;
	if (table->machine != TALLY_UNWIND_X86_64)
		return NULL;
	if (!table->has_starts)
		find_starts(table, address);
	if (table->starts.bits && address - table->starts.address < table->starts.size)
		return &table->starts;
	if (table->gap.bits && address - table->gap.address < table->gap.size)
		return &table->gap;
	tally_code_starts_release(&table->gap);
	uint64_t skipped = (address - piece->start) / most_bytes * most_bytes;
	uint64_t start = piece->start + skipped, size = piece->end - start;
	const uint8_t *code = tally_object_bytes_at(table->object, start, &available);
	if (!code)
		return NULL;
	if (size > most_bytes)
		size = most_bytes;
	if (size > available)
		size = available;
	if (tally_code_starts_find(code, size, start, &table->gap) < 0)
		return NULL;
	return &table->gap;
}

bool tally_unwind_table_extent(struct tally_unwind_table *table, uint64_t address,
			       uint64_t *start, uint64_t *end)
{
	enum { REACH = 64 << 10 };
	struct piece piece;
	if (tally_unwind_table_function(table, address, start, end))
		return true;
	if (!table->object || !find_code(table, address, &piece))
		return false;
	narrow_by_rules(table, address, &piece);
	const struct tally_code_starts *starts = starts_of(table, address, &piece);
	uint64_t likely, next;
	if (starts && tally_code_starts_likely(starts, address, REACH, &likely, &next)) {
		if (likely > piece.start)
			piece.start = likely;
		if (next < piece.end)
			piece.end = next;
	}
	*start = piece.start;
	*end = piece.end;
	return address - piece.start <= REACH;
}

bool tally_unwind_table_call(const struct tally_unwind_table *table, uint64_t return_address,
			     uint64_t *target)
{
	enum { CALL = 0xe8, CALL_BYTES = 5 };
	int32_t distance;
	size_t size;
	if (table->machine != TALLY_UNWIND_X86_64 || !table->object)
		return false;
	const uint8_t *code = tally_object_bytes_at(table->object, return_address - CALL_BYTES,
						    &size);
	if (!code || size < CALL_BYTES || code[0] != CALL)
		return false;
	memcpy(&distance, code + 1, sizeof(distance));
	*target = return_address + (uint64_t)(int64_t)distance;
	return true;
}

enum tally_unwind_lookup tally_unwind_table_lookup(struct tally_unwind_table *table,
						   uint64_t address,
						   struct tally_cfi_program *program)
{
	struct tally_unwind_function function;
	const struct tally_function_index *index = find_index(table, address, &function);
	if (!index)
		return TALLY_UNWIND_NOT_FOUND;
	if (!tally_function_index_start(index, &function, program))
		return TALLY_UNWIND_MALFORMED;
	while (tally_cfi_program_next(program))
		if (address < program->row_end)
			return TALLY_UNWIND_FOUND;
	return TALLY_UNWIND_MALFORMED;
}

const struct tally_unwind_rule *tally_unwind_table_rule(struct tally_unwind_table *table,
							uint64_t address,
							struct tally_rule_range *range)
{
	static const struct tally_unwind_rule NONE = { .kind = TALLY_RULE_NONE };
	*range = (struct tally_rule_range){ address, address + 1 };
	for (unsigned i = 0; i < table->index_count; i++) {
		bool is_failed;
		const struct tally_unwind_rule *rule = tally_unwind_rules_find(
			&table->rules[i], &table->indexes[i], address, range, &is_failed);
		if (rule && i) /* an earlier index may have a function within the range */
			*range = (struct tally_rule_range){ address, address + 1 };
		if (rule || is_failed)
			return rule;
	}
	return &NONE;
}

bool tally_unwind_table_has_rule(struct tally_unwind_table *table, uint64_t address)
{
	struct tally_rule_range range;
	const struct tally_unwind_rule *rule = tally_unwind_table_rule(table, address, &range);
	return rule && rule->kind != TALLY_RULE_NONE && rule->kind != TALLY_RULE_BAD;
}

void tally_unwind_table_use_functions(struct tally_unwind_table *table,
				      enum tally_unwind_function_kind (*find)(void *context,
									      uint64_t address,
									      uint64_t *start,
									      uint64_t *end),
				      void *context)
{
	struct tally_section section;
	table->is_go = table->object && tally_object_go_table(table->object, &section);
	table->is_ghc = table->object &&
			tally_object_section(table->object, ".debug-ghc-link-info", &section);
	table->find_function = find;
	table->functions = context;
}

bool tally_unwind_table_is_go(const struct tally_unwind_table *table)
{
	return table->is_go;
}

enum tally_unwind_function_kind tally_unwind_table_function_kind(struct tally_unwind_table *table,
								 uint64_t address)
{
	uint64_t start, end;
	if (table->is_go)
		return table->find_function(table->functions, address, &start, &end);
	return TALLY_UNWIND_NO_FUNCTION;
}

/* True for the trampoline that a signal handler returns to.  It is no function: it did not call the
 * handler. */
static bool is_sigreturn(const uint8_t *code, size_t size)
{
	return size && tally_code_recognise(code, size, 0) == TALLY_CODE_SIGRETURN;
}

/* Moves *start from a label inside of a function to the function's beginning.  Assembly has labels
 * that look like functions: for a loop, for instance.  The instructions of the symbol before lead
 * to such a label with something on the stack. */
static void leave_label(const struct tally_unwind_table *table, uint64_t *start)
{
	enum { LABELS_MAX = 64, BYTES_MAX = 16 << 10 };
	uint64_t label = *start, first = label, behind;
	bool is_label = true;
	for (unsigned i = 0; i < LABELS_MAX && is_label && first; i++) {
		size_t available;
		uint64_t before = first - 1;
		enum tally_unwind_function_kind kind =
			table->find_function(table->functions, before, &first, &behind);
		is_label = kind == TALLY_UNWIND_LABEL;
		if ((!is_label && kind != TALLY_UNWIND_FUNCTION) || first > before ||
		    label - first >= BYTES_MAX)
			return;
		const uint8_t *code = tally_object_bytes_at(table->object, first, &available);
		enum tally_code_way way = TALLY_CODE_NO_WAY;
		if (code && available > label - first)
			way = tally_code_way_to(code, (size_t)(label - first));
		if (way == TALLY_CODE_NO_WAY)
			return;
		if (way == TALLY_CODE_WAY_INSIDE)
			*start = first;
	}
}

const struct tally_unwind_rule *tally_unwind_table_code_rule(struct tally_unwind_table *table,
							     uint64_t address)
{
	uint64_t start, end;
	size_t available;
	struct tally_code_frame frame;
	if (!table->find_function || table->machine != TALLY_UNWIND_X86_64)
		return NULL;
	enum tally_unwind_function_kind kind =
		table->find_function(table->functions, address, &start, &end);
	if ((kind != TALLY_UNWIND_FUNCTION && kind != TALLY_UNWIND_LABEL) || address < start ||
	    address >= end)
		return NULL;
	if (kind == TALLY_UNWIND_LABEL)
		leave_label(table, &start);
	const uint8_t *code = tally_object_bytes_at(table->object, start, &available);
	size_t at = (size_t)(address - start), size = (size_t)(end - start);
	if (!code)
		return NULL;
	if (size > available)
		size = available;
	if (at >= size || is_sigreturn(code, size) ||
	    !tally_code_walk(code, size, at, &frame))
		return NULL;
	return tally_unwind_rules_of_frame(&table->made, &frame);
}

bool tally_unwind_table_is_entry(const struct tally_unwind_table *table, uint64_t address)
{
	enum { CERTAIN_BYTES = 48, BYTES_MAX = 1024 };
	uint64_t at = address - table->entry_point;
	size_t available;
	if (!table->entry_point || at >= BYTES_MAX)
		return false;
	if (at < CERTAIN_BYTES)
		return true;
	const uint8_t *code = tally_object_bytes_at(table->object, table->entry_point, &available);
	return code && available > at && tally_code_leads_to(code, available, (size_t)at);
}

bool tally_unwind_table_begun_frame(struct tally_unwind_table *table, uint64_t address,
				    uint64_t *start, struct tally_code_frame *frame)
{
	enum { REACH = 8 << 10 };
	uint64_t end;
	size_t available;
	if (!table->find_function || table->machine != TALLY_UNWIND_X86_64 ||
	    table->find_function(table->functions, address, start, &end) !=
		    TALLY_UNWIND_NO_FUNCTION)
		return false;
	if (!table->has_starts)
		find_starts(table, address);
	if (!table->starts.bits ||
	    !tally_code_starts_around(&table->starts, address, REACH, start, &end))
		return false;
	const uint8_t *code = tally_object_bytes_at(table->object, *start, &available);
	return code && available >= end - *start &&
	       tally_code_walk_plainly(code, (size_t)(end - *start), *start,
				       (size_t)(address - *start), frame);
}

/* Finds .eh_frame_hdr by its program header. */
static bool find_linker_table(struct tally_object *object, struct tally_cfi_section *linker)
{
	Elf *elf = tally_object_elf(object);
	size_t count;
	if (!elf || elf_getphdrnum(elf, &count) != 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr header;
		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_GNU_EH_FRAME)
			continue;
		*linker = (struct tally_cfi_section){ .address = header.p_vaddr,
						      .data_address = header.p_vaddr };
		linker->bytes = tally_object_bytes_at(object, header.p_vaddr, &linker->size);
		return linker->bytes != NULL;
	}
	return false;
}

/* Finds .eh_frame by way of .eh_frame_hdr, which begins with: version 1, three encodings, the
 * pointer. */
static bool find_by_linker_table(struct tally_object *object,
				 const struct tally_cfi_section *linker,
				 struct tally_cfi_section *section)
{
	struct tally_reader reader;
	tally_reader_init(&reader, linker->bytes, linker->size, false);
	uint8_t version = tally_reader_u8(&reader), encoding = tally_reader_u8(&reader);
	tally_reader_u16(&reader);
	section->address = tally_cfi_pointer_read(linker, &reader, encoding);
	if (reader.failed || version != 1)
		return false;
	section->bytes = tally_object_bytes_at(object, section->address, &section->size);
	section->ends_at_zero = true;
	return section->bytes != NULL;
}

static uint64_t section_address(struct tally_object *object, const char *name)
{
	struct tally_section found;
	if (!tally_object_section(object, name, &found))
		return 0;
	return found.address;
}

static int add_section(struct tally_unwind_table *table, struct tally_object *object,
		       const char *name, bool is_debug_frame)
{
	struct tally_section found;
	struct tally_cfi_section section = { .is_debug_frame = is_debug_frame,
					     .machine = table->machine },
				 linker;
	bool has_linker = !is_debug_frame && find_linker_table(object, &linker);
	if (tally_object_section(object, name, &found) && found.bytes) {
		section.bytes = found.bytes;
		section.size = found.size;
		section.address = found.address;
	} else if (!has_linker || !find_by_linker_table(object, &linker, &section)) {
		return 0;
	}
	section.text_address = section_address(object, ".text");
	section.data_address = section_address(object, ".got");
	return add_index(table, &section, has_linker ? &linker : NULL);
}

static int add_sections(struct tally_unwind_table *table)
{
	table->machine = tally_unwind_machine_of_elf(tally_object_machine(table->object));
	bool is_narrow = table->machine == TALLY_UNWIND_I386;
	if (table->machine == TALLY_UNWIND_OTHER ||
	    tally_object_is_64bit(table->object) == is_narrow ||
	    tally_object_is_swapped(table->object))
		return 0;
	int result = add_section(table, table->object, ".eh_frame", false);
	if (result)
		return result;
	result = add_section(table, table->object, ".debug_frame", true);
	if (result)
		return result;
	GElf_Ehdr header;
	/* the entry point of a 32-bit vdso is a function that programs call */
	bool is_page = *tally_object_path(table->object) == '[';
	if (!is_page && tally_object_elf(table->object) &&
	    gelf_getehdr(tally_object_elf(table->object), &header))
		table->entry_point = header.e_entry;
	if (!table->debug)
		return 0;
	return add_section(table, table->debug, ".debug_frame", true);
}

static int out_of_memory(struct tally_error *err)
{
	return tally_error_set(err, -ENOMEM, "no memory for the unwind rules of an object");
}

int tally_unwind_table_new(struct tally_object *object, struct tally_object *debug,
			   struct tally_unwind_table **out, struct tally_error *err)
{
	struct tally_unwind_table *table = calloc(1, sizeof(*table));
	if (!table)
		return out_of_memory(err);
	table->object = tally_object_ref(object);
	if (debug)
		table->debug = tally_object_ref(debug);
	if (add_sections(table) < 0) {
		tally_unwind_table_free(table);
		return out_of_memory(err);
	}
	*out = table;
	return 0;
}

int tally_unwind_table_new_from_bytes(const struct tally_cfi_section *section,
				      const struct tally_cfi_section *linker,
				      struct tally_unwind_table **out, struct tally_error *err)
{
	struct tally_unwind_table *table = calloc(1, sizeof(*table));
	if (!table)
		return out_of_memory(err);
	table->machine = section->machine;
	if (add_index(table, section, linker) < 0) {
		tally_unwind_table_free(table);
		return out_of_memory(err);
	}
	*out = table;
	return 0;
}

int tally_unwind_table_new_from_frames(const void *eh_frame, size_t size, uint64_t address,
				       enum tally_unwind_machine machine,
				       struct tally_unwind_table **out)
{
	const struct tally_cfi_section section = {
		.bytes = eh_frame, .size = size, .address = address, .machine = machine
	};
	return tally_unwind_table_new_from_bytes(&section, NULL, out, NULL);
}

size_t tally_unwind_table_bytes(const struct tally_unwind_table *table)
{
	size_t bytes = sizeof(*table) +
		       table->code_sections.capacity * sizeof(*table->code_sections.items);
	if (table->starts.bits)
		bytes += table->starts.size / 4;
	if (table->gap.bits)
		bytes += table->gap.size / 4;
	for (unsigned i = 0; i < table->index_count; i++)
		bytes += table->indexes[i].functions.capacity *
				 sizeof(*table->indexes[i].functions.items) +
			 tally_unwind_rules_bytes(&table->rules[i], &table->indexes[i]);
	return bytes;
}

void tally_unwind_table_free(struct tally_unwind_table *table)
{
	if (!table)
		return;
	for (unsigned i = 0; i < table->index_count; i++) {
		tally_function_index_release(&table->indexes[i]);
		tally_unwind_rules_release(&table->rules[i]);
	}
	tally_unwind_rules_release(&table->made);
	tally_code_starts_release(&table->starts);
	tally_code_starts_release(&table->gap);
	tally_vector_release(&table->code_sections);
	tally_object_unref(table->debug);
	tally_object_unref(table->object);
	free(table);
}
