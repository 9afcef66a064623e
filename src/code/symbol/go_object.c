/* Opens Go's table in an object, and finds the parts that it needs.
 *
 * From 1.18 on, addresses are relative to the program's first function, and the trees of inlined
 * functions are in another part of the program.  The runtime's module data tell where both are.
 * Nothing names them in a stripped program, but their first word is the table's address.  In a
 * position-independent program that word, and the table's addresses (up to 1.16), may be in the
 * relocations only.
 */
#include "base/reader.h"
#include "object/object.h"
#include "symbol/symbol.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* Words of the module data. */
enum { MODULE_TEXT = 22, MODULE_TREES_1_18 = 38, MODULE_TREES_1_20 = 40 };

static uint64_t word_at(const struct tally_object *object, uint64_t address, unsigned word)
{
	size_t size;
	const uint8_t *bytes = tally_object_bytes_at(object, address, &size);
	struct tally_reader reader;
	if (!bytes) {
		bytes = (const uint8_t *)"";
		size = 0;
	}
	tally_reader_init(&reader, bytes, size, tally_object_is_swapped(object));
	return tally_reader_fixed(&reader, word);
}

/* ---- relocations --------------------------------------------------------- */

struct relocations {
	struct tally_reader reader;
	bool is_64bit;
};

static void relocations_begin(const struct tally_object *object, struct relocations *out)
{
	struct tally_section section;
	if (!tally_object_relocations(object, &section)) {
		section.bytes = (const uint8_t *)"";
		section.size = 0;
	}
	tally_reader_init(&out->reader, section.bytes, section.size,
			  tally_object_is_swapped(object));
	out->is_64bit = tally_object_is_64bit(object);
}

/* Reads the next relocation that adds the load address to a number (it names no symbol).  Returns
 * false at the end. */
static bool relocations_next(struct relocations *relocations, uint64_t *address, uint64_t *number)
{
	unsigned word = 4;
	if (relocations->is_64bit)
		word = 8;
	for (;;) {
		*address = tally_reader_fixed(&relocations->reader, word);
		uint64_t info = tally_reader_fixed(&relocations->reader, word);
		*number = tally_reader_fixed(&relocations->reader, word);
		if (relocations->reader.failed)
			return false;
		if (!(relocations->is_64bit ? info >> 32 : info >> 8))
			return true;
	}
}

static bool is_code(const struct tally_object *object, uint64_t address)
{
	const struct tally_segment *segment = tally_object_segment_at(object, address);
	return segment && segment->is_executable;
}

static void write_word(uint8_t *bytes, uint64_t value, const struct tally_go_table *table)
{
	uint32_t low = table->swap ? __builtin_bswap32((uint32_t)value) : (uint32_t)value;
	if (table->swap)
		value = __builtin_bswap64(value);
	memcpy(bytes, table->word == 8 ? (void *)&value : &low, table->word);
}

/* Fills in the functions' addresses, in a copy of the table, if the file does not have them. */
static int relocate(const struct tally_object *object, const struct tally_section *section,
		    struct tally_go_table *table, uint8_t **copy)
{
	struct relocations relocations;
	uint64_t size, at, address, number;
	at = tally_go_table_addresses(table, &size);
	if (!size || is_code(object, word_at(object, section->address + at, table->word)))
		return 0;
	*copy = malloc(table->size);
	if (!*copy)
		return -ENOMEM;
	memcpy(*copy, table->bytes, table->size);
	relocations_begin(object, &relocations);
	while (relocations_next(&relocations, &address, &number)) {
		uint64_t inside = address - section->address - at;
		if (inside < size && table->word <= size - inside)
			write_word(*copy + at + inside, number, table);
	}
	table->bytes = *copy;
	return 0;
}

/* ---- the module data ----------------------------------------------------- */

/* Returns a word of the module data: the file's, or else that of a relocation. */
static uint64_t module_word(const struct tally_object *object, uint64_t module, unsigned index,
			    unsigned word)
{
	uint64_t address = module + (uint64_t)index * word, value = word_at(object, address, word);
	struct relocations relocations;
	uint64_t at, number;
	if (value)
		return value;
	relocations_begin(object, &relocations);
	while (relocations_next(&relocations, &at, &number))
		if (at == address)
			return number;
	return 0;
}

/* Returns the address of the word that has the address of the table and is followed by the
 * addresses of functions where the module data have them; 0: none. */
static uint64_t find_module(const struct tally_object *object, uint64_t table, unsigned word)
{
	Elf *elf = tally_object_elf(object);
	size_t count, size;
	GElf_Phdr header;
	struct relocations relocations;
	uint64_t address, number;
	relocations_begin(object, &relocations);
	while (relocations_next(&relocations, &address, &number))
		if (number == table &&
		    is_code(object, module_word(object, address, MODULE_TEXT, word)))
			return address;
	if (elf_getphdrnum(elf, &count) < 0)
		return 0;
	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &header); i++) {
		const uint8_t *bytes = NULL;
		if (header.p_type == PT_LOAD && header.p_flags & PF_W)
			bytes = tally_object_bytes_at(object, header.p_vaddr, &size);
		struct tally_reader reader;
		if (!bytes)
			continue;
		tally_reader_init(&reader, bytes, size, tally_object_is_swapped(object));
		tally_reader_skip(&reader, -header.p_vaddr & (word - 1));
		while (tally_reader_left(&reader) >= word) {
			address = header.p_vaddr + tally_reader_offset(&reader);
			if (tally_reader_fixed(&reader, word) == table &&
			    is_code(object, module_word(object, address, MODULE_TEXT, word)))
				return address;
		}
	}
	return 0;
}

/* Finds where the functions and the trees of inlined functions begin. */
static void use_module(const struct tally_object *object, uint64_t address,
		       struct tally_go_table *table)
{
	struct tally_section text;
	uint64_t module = find_module(object, address, table->word);
	unsigned trees = MODULE_TREES_1_18;
	if (table->version == TALLY_GO_1_20)
		trees = MODULE_TREES_1_20;
	if (!is_code(object, table->text))
		table->text = module ? module_word(object, module, MODULE_TEXT, table->word) : 0;
	if (!table->text && tally_object_section(object, ".text", &text))
		table->text = text.address;
	if (module)
		table->trees = tally_object_bytes_at(
			object, module_word(object, module, trees, table->word),
			&table->trees_size);
}

int tally_go_object_open(const struct tally_object *object, struct tally_go_table *table,
			 uint8_t **copy)
{
	struct tally_section section;
	*copy = NULL;
	if (!tally_object_go_table(object, &section) ||
	    !tally_go_table_open(table, section.bytes, section.size,
				 tally_object_is_swapped(object)))
		return 0;
	if (relocate(object, &section, table, copy) < 0)
		return -ENOMEM;
	if (table->version == TALLY_GO_1_18 || table->version == TALLY_GO_1_20)
		use_module(object, section.address, table);
	return 1;
}
