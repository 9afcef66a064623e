#include "unwind/cfi.h"

#include "unwind/unwind_machine.h"

#include <string.h>

/* DW_EH_PE: the low four bits are the format; the next three say what the value is relative to. */
enum {
	PE_ABSPTR = 0x00, PE_ULEB128 = 0x01, PE_UDATA2 = 0x02, PE_UDATA4 = 0x03, PE_UDATA8 = 0x04,
	PE_SLEB128 = 0x09, PE_SDATA2 = 0x0a, PE_SDATA4 = 0x0b, PE_SDATA8 = 0x0c, PE_FORMAT = 0x0f,
	PE_PCREL = 0x10, PE_TEXTREL = 0x20, PE_DATAREL = 0x30, PE_ALIGNED = 0x50, PE_BASE = 0x70,
	PE_INDIRECT = 0x80, PE_OMIT = 0xff
};

static struct tally_reader reader_over(const struct tally_cfi_section *section, uint32_t offset,
				       uint32_t end)
{
	struct tally_reader reader;
	tally_reader_init(&reader, section->bytes, end, false);
	tally_reader_seek(&reader, offset);
	return reader;
}

static uint64_t read_format(struct tally_reader *reader, uint8_t format)
{
	switch (format) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return tally_reader_u64(reader);
	case PE_ULEB128:
		return tally_reader_uleb(reader);
	case PE_SLEB128:
		return (uint64_t)tally_reader_sleb(reader);
	case PE_UDATA2:
		return tally_reader_u16(reader);
	case PE_SDATA2:
		return (uint64_t)(int16_t)tally_reader_u16(reader);
	case PE_UDATA4:
		return tally_reader_u32(reader);
	case PE_SDATA4:
		return (uint64_t)(int32_t)tally_reader_u32(reader);
	}
	reader->failed = true;
	return 0;
}

uint64_t tally_cfi_pointer_read(const struct tally_cfi_section *section,
				struct tally_reader *reader, uint8_t encoding)
{
	uint64_t here = section->address + tally_reader_offset(reader);
	uint64_t base = 0;
	switch (encoding & (PE_BASE | PE_INDIRECT)) {
	case 0:
		break;
	case PE_PCREL:
		base = here;
		break;
	case PE_TEXTREL:
		base = section->text_address;
		reader->failed |= base == 0;
		break;
	case PE_DATAREL:
		base = section->data_address;
		reader->failed |= base == 0;
		break;
	case PE_ALIGNED:
		tally_reader_bytes(reader, -here & 7);
		return tally_reader_u64(reader);
	/* DW_EH_PE_funcrel: the function is not known yet.  Indirect pointers: the value that they
	 * point at is not in the file. */
	default:
		reader->failed = true;
	}
	return base + read_format(reader, encoding & PE_FORMAT);
}

bool tally_cfi_entry_read(const struct tally_cfi_section *section, size_t offset,
			  struct tally_cfi_entry *entry)
{
	if (offset >= section->size || section->size > TALLY_CFI_SECTION_MAX)
		return false;
	struct tally_reader reader = reader_over(section, (uint32_t)offset,
						 (uint32_t)section->size);
	*entry = (struct tally_cfi_entry){ .kind = TALLY_CFI_NOTHING, .offset = (uint32_t)offset };
	uint64_t length = tally_reader_u32(&reader);
	bool is_64bit = length == 0xffffffff;
	if (is_64bit)
		length = tally_reader_u64(&reader);
	else if (length >= 0xfffffff0)
		return false; /* reserved */
	if (length == 0) {
		/* crtend.o ends the section with a zero length.  The linker may put more entries
		 * behind it; readers that know the section's size go on there. */
		entry->body = entry->end = (uint32_t)tally_reader_offset(&reader);
		return !reader.failed && !section->ends_at_zero;
	}
	if (reader.failed || length > tally_reader_left(&reader))
		return false;
	size_t id_at = tally_reader_offset(&reader);
	entry->end = (uint32_t)(id_at + length);
	/* In .eh_frame the id has 4 bytes even behind a 64-bit length. */
	bool is_wide = is_64bit && section->is_debug_frame;
	if (length < (is_wide ? 8 : 4))
		return true; /* too short for an id: callers skip it */
	uint64_t id = is_wide ? tally_reader_u64(&reader) : tally_reader_u32(&reader);
	entry->body = (uint32_t)tally_reader_offset(&reader);
	uint64_t cie_mark = !section->is_debug_frame ? 0 : is_wide ? UINT64_MAX : UINT32_MAX;
	if (id == cie_mark) {
		entry->kind = TALLY_CFI_CIE;
		return true;
	}
	/* An FDE in .debug_frame names its CIE by an offset in the section; in .eh_frame by the
	 * distance back from this field. */
	uint64_t cie = section->is_debug_frame ? id : id_at - id;
	if (cie < section->size) {
		entry->kind = TALLY_CFI_FDE;
		entry->cie = (uint32_t)cie;
	}
	return true;
}

/* Reads augmentation data.  Each letter behind the z ("zPLRS") announces one item, in the letters'
 * order.  Returns false when a letter is unknown or data is missing. */
static bool read_augmentation(const struct tally_cfi_section *section, struct tally_reader *reader,
			      const char *letters, struct tally_cfi_cie *cie)
{
	cie->has_augmentation_data = true;
	uint64_t size = tally_reader_uleb(reader);
	if (size > tally_reader_left(reader))
		return false;
	size_t end = tally_reader_offset(reader) + size;
	for (; *letters; letters++) {
		uint8_t encoding;
		switch (*letters) {
		case 'R':
			cie->encoding = tally_reader_u8(reader);
			break;
		/* The personality routine for exceptions.  Skip its pointer, whatever the
		 * encoding. */
		case 'P':
			encoding = tally_reader_u8(reader);
			if ((encoding & PE_BASE) == PE_ALIGNED)
				tally_cfi_pointer_read(section, reader, PE_ALIGNED);
			else if (encoding != PE_OMIT)
				read_format(reader, encoding & PE_FORMAT);
			break;
		/* The encoding of each FDE's pointer to its exception table.  FDEs skip the pointer
		 * by its length. */
		case 'L':
			tally_reader_u8(reader);
			break;
		case 'S':
			cie->is_signal_frame = true;
			break;
		case 'B': /* arm64: return addresses are signed with the other key */
		case 'G': /* arm64: the frame's memory is tagged.  Neither changes the rules. */
			break;
		default:
			return false;
		}
	}
	if (reader->failed || tally_reader_offset(reader) > end)
		return false;
	tally_reader_seek(reader, end);
	return true;
}

bool tally_cfi_cie_read(const struct tally_cfi_section *section,
			const struct tally_cfi_entry *entry, struct tally_cfi_cie *cie)
{
	if (entry->kind != TALLY_CFI_CIE)
		return false;
	struct tally_reader reader = reader_over(section, entry->body, entry->end);
	*cie = (struct tally_cfi_cie){ .offset = entry->offset, .encoding = PE_ABSPTR };
	uint8_t version = tally_reader_u8(&reader);
	const char *augmentation = tally_reader_string(&reader);
	if (!augmentation || (version != 1 && version != 3 && version != 4))
		return false;
	if (strncmp(augmentation, "eh", 2) == 0) { /* gcc 2: a pointer to its exception table */
		tally_reader_u64(&reader);
		augmentation += 2;
	}
	if (version == 4) {
		if (tally_reader_u8(&reader) != 8) /* size of an address, in bytes */
			return false;
		cie->segment_size = tally_reader_u8(&reader);
	}
	cie->code_align = tally_reader_uleb(&reader);
	cie->data_align = tally_reader_sleb(&reader);
	uint64_t column = version == 1 ? tally_reader_u8(&reader) : tally_reader_uleb(&reader);
	if (reader.failed || column >= tally_unwind_layout(section->machine)->count)
		return false;
	cie->return_register = (uint32_t)column;
	if (augmentation[0] == 'z') {
		if (!read_augmentation(section, &reader, augmentation + 1, cie))
			return false;
	} else if (augmentation[0]) {
		return false; /* without z, the size of the data is unknown */
	}
	cie->instructions = (uint32_t)tally_reader_offset(&reader);
	cie->instructions_end = entry->end;
	return true;
}

bool tally_cfi_fde_read(const struct tally_cfi_section *section,
			const struct tally_cfi_entry *entry, const struct tally_cfi_cie *cie,
			struct tally_cfi_fde *fde)
{
	if (entry->kind != TALLY_CFI_FDE)
		return false;
	struct tally_reader reader = reader_over(section, entry->body, entry->end);
	tally_reader_bytes(&reader, cie->segment_size);
	fde->start = tally_cfi_pointer_read(section, &reader, cie->encoding);
	uint64_t size = read_format(&reader, cie->encoding & PE_FORMAT);
	if (cie->has_augmentation_data)
		tally_reader_bytes(&reader, tally_reader_uleb(&reader));
	fde->end = fde->start + size;
	fde->instructions = (uint32_t)tally_reader_offset(&reader);
	fde->instructions_end = entry->end;
	return !reader.failed && fde->end > fde->start;
}
