/* Reads the ELF note in which a program says that it needs AVX-512: x86-64-v4 (psABI, .note.gnu.property).
 */
#include "valgrind/vsim_program.h"

#include <elf.h>
#include <stdbool.h>

/* Named as in binutils and the psABI; an older elf.h lacks them. */
enum { NOTE_PROPERTIES = 5, ISA_V4 = 8 };
static const uint32_t ISA_NEEDED = 0xc0008002;

struct bytes {
	const uint8_t *at;
	uint64_t size;
};

static uint64_t number(const uint8_t *at, unsigned width)
{
	uint64_t value = 0;
	while (width--)
		value = value << 8 | at[width];
	return value;
}

#define FIELD(at, type, member) number((at) + offsetof(type, member), sizeof(((type *)0)->member))

/* Returns the range, or nothing if it isn't inside `whole`. */
static struct bytes part(struct bytes whole, uint64_t from, uint64_t size)
{
	if (from > whole.size || size > whole.size - from)
		return (struct bytes){ 0 };
	return (struct bytes){ whole.at + from, size };
}

/* Takes `size` bytes off `rest`, with the padding up to a multiple of 8.  If `rest` is too short,
 * the result and `rest` are empty. */
static struct bytes take(struct bytes *rest, uint64_t size)
{
	struct bytes taken = part(*rest, 0, size);
	uint64_t step = size + (-size & 7);
	if (taken.at && step < rest->size)
		*rest = part(*rest, step, rest->size - step);
	else
		*rest = (struct bytes){ 0 };
	return taken;
}

static bool property_needs_v4(struct bytes properties)
{
	while (properties.size >= 8) {
		uint64_t type = number(properties.at, 4), size = number(properties.at + 4, 4);
		struct bytes property = take(&properties, 8 + size);
		if (type == ISA_NEEDED && size == 4 && property.at)
			return number(property.at + 8, 4) & ISA_V4;
	}
	return false;
}

/* True if a note demands x86-64-v4.  The notes' parts begin at multiples of 8, as property notes do
 * in 64-bit files. */
static bool notes_need_v4(struct bytes notes)
{
	enum { HEAD = sizeof(Elf64_Nhdr), NAME = 4 };
	while (notes.size >= HEAD + NAME) {
		const uint8_t *head = notes.at;
		bool ours = FIELD(head, Elf64_Nhdr, n_namesz) == NAME &&
			    FIELD(head, Elf64_Nhdr, n_type) == NOTE_PROPERTIES &&
			    number(head + HEAD, NAME) == number((const uint8_t *)"GNU", NAME);
		uint64_t size = FIELD(head, Elf64_Nhdr, n_descsz);
		take(&notes, HEAD + FIELD(head, Elf64_Nhdr, n_namesz));
		struct bytes content = take(&notes, size);
		if (ours)
			return content.at && property_needs_v4(content);
	}
	return false;
}

static bool needs_v4(struct bytes file)
{
	uint64_t table = FIELD(file.at, Elf64_Ehdr, e_phoff),
		 count = FIELD(file.at, Elf64_Ehdr, e_phnum);
	if (FIELD(file.at, Elf64_Ehdr, e_phentsize) != sizeof(Elf64_Phdr))
		return false;
	struct bytes headers = part(file, table, count * sizeof(Elf64_Phdr));
	for (; headers.size;
	     headers = part(headers, sizeof(Elf64_Phdr), headers.size - sizeof(Elf64_Phdr))) {
		const uint8_t *head = headers.at;
		if (FIELD(head, Elf64_Phdr, p_type) == PT_NOTE &&
		    FIELD(head, Elf64_Phdr, p_align) == 8 &&
		    notes_need_v4(part(file, FIELD(head, Elf64_Phdr, p_offset),
				       FIELD(head, Elf64_Phdr, p_filesz))))
			return true;
	}
	return false;
}

enum vsim_program vsim_program_look(const uint8_t *head, size_t size)
{
	if (size < sizeof(Elf32_Ehdr) || number(head, 4) != number((const uint8_t *)ELFMAG, 4))
		return VSIM_PROGRAM_NO_ELF;
	if (head[EI_CLASS] == ELFCLASS32)
		return VSIM_PROGRAM_32_BITS;
	if (head[EI_CLASS] != ELFCLASS64 || FIELD(head, Elf64_Ehdr, e_machine) != EM_X86_64)
		return VSIM_PROGRAM_OTHER_MACHINE;
	if (size < sizeof(Elf64_Ehdr))
		return VSIM_PROGRAM_X86_64;
	if (needs_v4((struct bytes){ head, size }))
		return VSIM_PROGRAM_AVX512;
	return VSIM_PROGRAM_X86_64;
}
