/* The tables that PT_DYNAMIC leads to.  A program loader needs them, so they are there even when
 * the section headers were stripped.  PT_DYNAMIC does not tell how many symbols there are; the hash
 * table for look-ups does. */
#include "object/object.h"

#include "base/reader.h"

#include <gelf.h>
#include <string.h>

/* Values of PT_DYNAMIC; 0: it has none. */
struct values {
	uint64_t symbols, strings, strings_size, hash, gnu_hash, relocations, relocations_size;
};

static void open_reader(const struct tally_object *object, uint64_t address,
			struct tally_reader *reader)
{
	size_t size;
	const uint8_t *bytes = NULL;
	if (address)
		bytes = tally_object_bytes_at(object, address, &size);
	if (!bytes) {
		bytes = (const uint8_t *)"";
		size = 0;
	}
	tally_reader_init(reader, bytes, size, tally_object_is_swapped(object));
}

static unsigned word_bytes(const struct tally_object *object)
{
	return tally_object_is_64bit(object) ? 8 : 4;
}

static uint64_t read_word(const struct tally_object *object, struct tally_reader *reader)
{
	return tally_reader_fixed(reader, word_bytes(object));
}

static bool read_values(const struct tally_object *object, struct values *values)
{
	Elf *elf = tally_object_elf(object);
	size_t count, possible;
	GElf_Phdr header = { 0 };
	tally_object_image(object, &possible);
	if (elf_getphdrnum(elf, &count) < 0)
		return false;
	if (count > possible / sizeof(Elf32_Phdr))
		count = possible / sizeof(Elf32_Phdr);
	for (size_t i = 0; i < count && header.p_type != PT_DYNAMIC; i++)
		if (!gelf_getphdr(elf, (int)i, &header))
			return false;
	struct tally_reader reader;
	if (!count || header.p_type != PT_DYNAMIC)
		return false;
	open_reader(object, header.p_vaddr, &reader);
	*values = (struct values){ 0 };
	while (tally_reader_left(&reader)) {
		uint64_t tag = read_word(object, &reader), value = read_word(object, &reader);
		if (reader.failed || tag == DT_NULL)
			break;
		if (tag == DT_SYMTAB)
			values->symbols = value;
		else if (tag == DT_STRTAB)
			values->strings = value;
		else if (tag == DT_STRSZ)
			values->strings_size = value;
		else if (tag == DT_HASH)
			values->hash = value;
		else if (tag == DT_GNU_HASH)
			values->gnu_hash = value;
		else if (tag == DT_RELA)
			values->relocations = value;
		else if (tag == DT_RELASZ)
			values->relocations_size = value;
	}
	return true;
}

/* Returns the number of symbols by DT_GNU_HASH: the last chain ends at the last symbol.  Symbols
 * that are not exported come first and are in no chain. */
static uint64_t count_by_gnu_hash(const struct tally_object *object, uint64_t address)
{
	struct tally_reader reader;
	open_reader(object, address, &reader);
	uint32_t buckets = tally_reader_u32(&reader), first = tally_reader_u32(&reader);
	uint32_t bloom_words = tally_reader_u32(&reader), last = 0;
	tally_reader_skip(&reader, 4);
	tally_reader_skip(&reader, (uint64_t)bloom_words * word_bytes(object));
	for (uint32_t i = 0; i < buckets && !reader.failed; i++) {
		uint32_t symbol = tally_reader_u32(&reader);
		if (symbol > last)
			last = symbol;
	}
	if (reader.failed)
		return 0;
	if (last < first)
		return first;
	tally_reader_skip(&reader, (uint64_t)(last - first) * 4);
	while (!reader.failed && !(tally_reader_u32(&reader) & 1))
		last++;
	if (reader.failed)
		return 0;
	return (uint64_t)last + 1;
}

static uint64_t count_symbols(const struct tally_object *object, const struct values *values,
			      size_t entry_size)
{
	struct tally_reader reader;
	uint64_t count = 0;
	open_reader(object, values->hash, &reader);
	tally_reader_skip(&reader, 4);
	if (values->hash)
		count = tally_reader_u32(&reader); /* a chain entry for each symbol */
	if (!count && values->gnu_hash)
		count = count_by_gnu_hash(object, values->gnu_hash);
	if (!count && values->strings > values->symbols) /* linkers put the names behind them */
		count = (values->strings - values->symbols) / entry_size;
	return count;
}

/* Sets a section that begins at an address and is as large as wanted, or as its segment allows. */
static bool set_section(const struct tally_object *object, uint64_t address, uint64_t size,
			uint32_t type, struct tally_section *out)
{
	size_t available;
	const uint8_t *bytes = NULL;
	if (address)
		bytes = tally_object_bytes_at(object, address, &available);
	*out = (struct tally_section){ .address = address, .type = type, .bytes = bytes };
	out->size = size;
	if (bytes && size > available)
		out->size = available;
	return bytes != NULL && size > 0;
}

bool tally_object_dynamic_symbols(const struct tally_object *object, struct tally_section *symbols,
				  struct tally_section *strings)
{
	struct values values;
	size_t entry_size = tally_object_is_64bit(object) ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	if (!read_values(object, &values))
		return false;
	uint64_t count = count_symbols(object, &values, entry_size);
	return count < UINT32_MAX &&
	       set_section(object, values.symbols, count * entry_size, SHT_DYNSYM, symbols) &&
	       set_section(object, values.strings, values.strings_size, SHT_STRTAB, strings);
}

bool tally_object_relocations(const struct tally_object *object, struct tally_section *out)
{
	struct values values;
	if (tally_object_section(object, ".rela.dyn", out))
		return out->bytes && out->type == SHT_RELA;
	return read_values(object, &values) &&
	       set_section(object, values.relocations, values.relocations_size, SHT_RELA, out);
}
