/* An ELF file of any bytes: reads all parts that tally uses, and every byte that they return. */
#include "fuzz.h"

#include "object/object.h"
#include "symbol/symbol.h"

#include <stdlib.h>
#include <string.h>

/* A destination, so that the reads happen. */
static volatile uint8_t sink;

static void read_sections(const struct tally_object *object)
{
	static const char *const NAMES[] = { ".text",       ".symtab",       ".strtab",
					     ".eh_frame",   ".eh_frame_hdr", ".debug_frame",
					     ".debug_info", ".gnu_debuglink" };
	struct tally_section section;
	for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
		if (tally_object_section(object, NAMES[i], &section) && section.bytes)
			for (size_t at = 0; at < section.size; at++)
				sink = section.bytes[at];
	for (uint32_t i = 0; i < 64; i++)
		if (tally_object_section_at(object, i, &section) && section.bytes && section.size)
			sink = section.bytes[section.size - 1];
}

static void read_segments(const struct tally_object *object, size_t size)
{
	for (uint64_t offset = 0; offset < size + 4096; offset += 64) {
		uint64_t address;
		size_t available;
		if (!tally_object_address_of_offset(object, offset, &address))
			continue;
		const uint8_t *bytes = tally_object_bytes_at(object, address, &available);
		if (bytes)
			sink = bytes[available - 1];
	}
}

static void read_symbols(const struct tally_object *object)
{
	struct tally_symbols *symbols = NULL;
	if (tally_symbols_from_object(object, object, &symbols, NULL) < 0)
		return;
	size_t count;
	const struct tally_symbol *list = tally_symbols_list(symbols, &count);
	for (size_t i = 0; i < count; i++) {
		/* A table is sorted, has no duplicates, and finds its own entries. */
		if (list[i].start >= list[i].end || (i > 0 && list[i].start <= list[i - 1].start) ||
		    tally_symbols_find(symbols, list[i].start) != &list[i])
			abort();
		if (i < 256)
			free(tally_demangle_signature(list[i].name));
	}
	tally_symbols_free(symbols);
}

/* Links the file as a kernel module; the result is an object like any other. */
static void link_module(const struct tally_object *object)
{
	struct tally_object *linked;
	size_t count;
	uint64_t *addresses = tally_module_addresses(object, &count);
	if (!addresses)
		return;
	tally_module_place(object, 0xffffffffc0000000u, addresses, count);
	if (!tally_module_link(object, addresses, count, &linked)) {
		read_sections(linked);
		read_symbols(linked);
		tally_object_unref(linked);
	}
	free(addresses);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_object *object = NULL;
	if (tally_object_open_memory("fuzz", data, size, &object, NULL) < 0)
		return 0;
	char text[2 * TALLY_BUILD_ID_MAX + 1];
	tally_build_id_format(tally_object_build_id(object), text);
	read_sections(object);
	read_segments(object, size);
	read_symbols(object);
	link_module(object);
	/* .gnu_debugdata, and links to missing files */
	struct tally_object *mini = tally_search_debug(NULL, object, NULL);
	if (mini)
		read_symbols(mini);
	tally_object_unref(mini);
	tally_object_unref(object);
	return 0;
}
