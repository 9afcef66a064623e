/* Finds the table of functions and lines that Go's linker puts into each program (.gopclntab).  The
 * runtime needs it, so strip(1) can't remove it.  If GNU ld makes a position-independent program,
 * the table is part of .data.rel.ro, and without section headers it has no name at all.  Then its
 * header is searched for. */
#include "base/reader.h"
#include "object/object.h"

#include <gelf.h>
#include <string.h>

enum { HEADER_BYTES = 8, ALIGNMENT = 4 };

/* True if a header is followed by a number of functions that fits. */
static bool is_table(const struct tally_object *object, const uint8_t *bytes, size_t size)
{
	struct tally_reader reader;
	tally_reader_init(&reader, bytes, size, tally_object_is_swapped(object));
	uint32_t magic = tally_reader_u32(&reader);
	uint16_t zero = tally_reader_u16(&reader);
	uint8_t quantum = tally_reader_u8(&reader), word = tally_reader_u8(&reader);
	uint64_t functions = tally_reader_fixed(&reader, word);
	return !reader.failed && !zero && (quantum == 1 || quantum == 2 || quantum == 4) &&
	       word == (tally_object_is_64bit(object) ? 8 : 4) &&
	       (magic == TALLY_GO_1_2 || magic == TALLY_GO_1_16 || magic == TALLY_GO_1_18 ||
		magic == TALLY_GO_1_20) &&
	       functions && functions <= size / HEADER_BYTES;
}

/* Searches bytes that begin at an address. */
static bool search(const struct tally_object *object, const uint8_t *bytes, size_t size,
		   uint64_t address, struct tally_section *out)
{
	size_t at = (size_t)(-address & (ALIGNMENT - 1));
	for (; at + HEADER_BYTES <= size; at += ALIGNMENT) {
		/* in either byte order */
		if (bytes[at + 1] != 0xff || bytes[at + 2] != 0xff ||
		    !is_table(object, bytes + at, size - at))
			continue;
		*out = (struct tally_section){ .address = address + at, .size = size - at,
					       .type = SHT_PROGBITS, .bytes = bytes + at };
		return true;
	}
	return false;
}

static bool search_segments(const struct tally_object *object, struct tally_section *out)
{
	Elf *elf = tally_object_elf(object);
	size_t count;
	GElf_Phdr header;
	if (elf_getphdrnum(elf, &count) < 0)
		return false;
	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &header); i++) {
		size_t size;
		const uint8_t *bytes = NULL;
		if (header.p_type == PT_LOAD && !(header.p_flags & PF_X))
			bytes = tally_object_bytes_at(object, header.p_vaddr, &size);
		if (bytes && search(object, bytes, size, header.p_vaddr, out))
			return true;
	}
	return false;
}

bool tally_object_go_table(const struct tally_object *object, struct tally_section *out)
{
	struct tally_section section;
	if (tally_object_section(object, ".gopclntab", out) ||
	    tally_object_section(object, ".data.rel.ro.gopclntab", out))
		return out->bytes && out->type != SHT_NOBITS;
	size_t sections;
	bool has_sections = elf_getshdrnum(tally_object_elf(object), &sections) == 0 && sections;
	bool may_be_go = !has_sections || tally_object_section(object, ".go.buildinfo", &section) ||
			 tally_object_section(object, ".note.go.buildid", &section);
	return may_be_go && search_segments(object, out);
}
