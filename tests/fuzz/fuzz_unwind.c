/* Bytes as unwind rules, and as the stack that they are followed through.
 *
 * Byte 0: bit 0 .debug_frame, bit 1 a section that ends at its end mark.  Byte 1: 8-byte words of stack that follow.
 * The rest is the section.  Whatever the rules say, the walk must end, within the bytes given.
 */
#include "unwind/unwind.h"
#include "unwind/unwind_table.h"

#include <stdlib.h>
#include <string.h>

enum { SECTION = 0x100000, STACK = 0x700000, FRAMES = 64, FUNCTIONS = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool find(void *context, uint64_t address, struct tally_unwind_place *place)
{
	*place = (struct tally_unwind_place){ .table = address % 64 ? context : NULL, .address = address };
	return address != 0x1234;
}

/* From the start, the middle and the end of a function. */
static void walk(const struct tally_unwind_table *table, const struct tally_unwind_function *function,
		 const uint8_t *stack, size_t stack_size)
{
	uint64_t addresses[FRAMES];
	for (unsigned part = 0; part < 3; part++) {
		struct tally_unwind_request request = { .stack = stack, .stack_size = stack_size, .find = find,
							.context = (void *)table };
		for (unsigned reg = 0; reg < TALLY_UNWIND_REGISTERS; reg++)
			request.registers[reg] = STACK + reg * 8;
		request.registers[TALLY_UNWIND_RSP] = STACK;
		request.registers[TALLY_UNWIND_RIP] =
			function->start + (part == 0 ? 0 : part == 1 ? function->size / 2 : function->size - 1);
		enum tally_unwind_end end;
		size_t count = tally_unwind(&request, addresses, FRAMES, &end);
		if (count == 0 || count > FRAMES || !tally_unwind_end_text(end)[0])
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	size_t stack_size = data[1] * (size_t)8;
	if (size - 2 < stack_size)
		stack_size = size - 2;
	size_t section_size = size - 2 - stack_size;
	/* Their own allocations: a byte too far must be seen. */
	uint8_t *stack = malloc(stack_size + 1), *bytes = malloc(section_size + 1);
	struct tally_unwind_table *table = NULL;
	if (stack && bytes) {
		uint8_t *stack_at = stack + 1, *bytes_at = bytes + 1;
		memcpy(stack_at, data + 2, stack_size);
		memcpy(bytes_at, data + 2 + stack_size, section_size);
		struct tally_cfi_section section = { .bytes = bytes_at, .size = section_size, .address = SECTION,
						     .text_address = 0x1000, .data_address = 0x2000,
						     .is_debug_frame = data[0] & 1, .ends_at_zero = data[0] & 2 };
		if (tally_unwind_table_new_from_bytes(&section, &table, NULL) == 0) {
			size_t functions, with, count = table->index_count ? table->indexes[0].functions.count : 0;
			tally_unwind_table_uses_frame_pointers(table, &functions, &with);
			if (with > functions || functions > count)
				abort();
			for (size_t i = 0; i < count && i < FUNCTIONS; i++)
				walk(table, &table->indexes[0].functions.items[i], stack_at, stack_size);
		}
	}
	tally_unwind_table_free(table);
	free(bytes);
	free(stack);
	return 0;
}
