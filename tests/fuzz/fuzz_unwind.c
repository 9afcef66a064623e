/* Takes bytes as unwind rules, and as the stack to unwind with them.
 *
 * Byte 0: bit 0 means .debug_frame; bit 1 a section that ends at its end mark; bit 2 arm64's
 * registers; bit 3 that the section's first eight bytes and the following ones are also a linker's
 * table.  Byte 1: number of 8-byte words of stack that follow.  The rest is the section.  For any
 * rules, the walk must end, stay inside the bytes, and agree between compiled rules and
 * interpreter. */
#include "fuzz.h"

#include "unwind/unwind.h"
#include "unwind/unwind_internal.h"

#include "../unit/unwind_ways.h"

#include <stdlib.h>
#include <string.h>

enum { SECTION = 0x100000, STACK = 0x700000, FRAMES = 64, FUNCTIONS = 32 };

static bool find(void *context, uint64_t address, struct tally_unwind_place *place)
{
	*place = (struct tally_unwind_place){ .table = address % 64 ? context : NULL,
					      .address = address };
	return address != 0x1234;
}

/* Walks from the start, the middle and the end of a function. */
static uint64_t spaces;

static void walk(struct tally_unwind_table *table, const struct tally_unwind_function *function,
		 const uint8_t *stack, size_t stack_size)
{
	const struct tally_unwind_layout *layout = tally_unwind_layout(table->machine);
	/* One cache for all inputs; each input has a space of its own. */
	static struct tally_unwind_cache *cache;
	if (!cache)
		cache = tally_unwind_cache_new();
	const uint64_t parts[] = { 0, function->size / 2, function->size - 1 };
	for (unsigned part = 0; part < 3; part++) {
		struct tally_unwind_request request = { .space = spaces,
							.machine = table->machine,
							.stack = stack,
							.stack_size = stack_size,
							.find = find,
							.context = table };
		for (unsigned reg = 0; reg < TALLY_UNWIND_REGISTERS; reg++)
			request.registers[reg] = STACK + reg * 8;
		request.registers[layout->sp] = STACK;
		request.registers[layout->pc] = function->start + parts[part];
		struct unwind_way way;
		if (!unwind_every_way(&request, cache, FRAMES, &way) || way.count == 0 ||
		    way.count > FRAMES || !tally_unwind_end_text(way.end)[0])
			abort();
	}
}

/* The linker's table may turn out wrong, and is then dropped. */
static void walk_functions(struct tally_unwind_table *table, const uint8_t *stack,
			   size_t stack_size)
{
	struct tally_unwind_function function;
	for (size_t i = 0; table->index_count && i < table->indexes[0].count && i < FUNCTIONS; i++)
		if (tally_function_index_at(&table->indexes[0], i, &function))
			walk(table, &function, stack, stack_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	spaces++;
	size_t stack_size = data[1] * (size_t)8;
	if (size - 2 < stack_size)
		stack_size = size - 2;
	size_t section_size = size - 2 - stack_size;
	/* Allocations of their own, so that reads beyond them are seen. */
	uint8_t *stack = malloc(stack_size + 1), *bytes = malloc(section_size + 1);
	struct tally_unwind_table *table = NULL;
	if (stack && bytes) {
		uint8_t *stack_at = stack + 1, *bytes_at = bytes + 1;
		memcpy(stack_at, data + 2, stack_size);
		memcpy(bytes_at, data + 2 + stack_size, section_size);
		struct tally_cfi_section section = { .bytes = bytes_at,
						     .size = section_size,
						     .address = SECTION,
						     .text_address = 0x1000,
						     .data_address = 0x2000,
						     .is_debug_frame = data[0] & 1,
						     .ends_at_zero = data[0] & 2,
						     .machine = data[0] & 4 ? TALLY_UNWIND_ARM64
									    : TALLY_UNWIND_X86_64 };
		struct tally_cfi_section linker = section;
		linker.data_address = linker.address;
		if (tally_unwind_table_new_from_bytes(&section, data[0] & 8 ? &linker : NULL,
						      &table, NULL) == 0)
			walk_functions(table, stack_at, stack_size);
	}
	tally_unwind_table_free(table);
	free(bytes);
	free(stack);
	return 0;
}
