/* What a program's file says of itself: tally asks before it starts one, the tool before a
 * simulated one executes another.  Freestanding; MIT.  Format: elf(5), and the x86-64 psABI's
 * .note.gnu.property. */
#ifndef TALLY_VALGRIND_VSIM_PROGRAM_H
#define TALLY_VALGRIND_VSIM_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

/* So much of a file's beginning is looked at: linkers put the notes right behind the headers. */
enum { VSIM_PROGRAM_HEAD = 4096 };

enum vsim_program {
	VSIM_PROGRAM_NO_ELF,
	VSIM_PROGRAM_X86_64,
	VSIM_PROGRAM_32_BITS,
	VSIM_PROGRAM_OTHER_MACHINE,
	/* its note says that it needs x86-64-v4; most that do have no such note */
	VSIM_PROGRAM_AVX512
};

/* Of a file's first bytes.  Any bytes will do: what is damaged, or ends too soon, counts as not
 * said. */
enum vsim_program vsim_program_look(const uint8_t *head, size_t size);

#endif
