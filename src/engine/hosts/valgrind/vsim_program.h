/* Tells what kind of program an ELF file holds.  tally checks a program before starting it; the
 * tool checks before a simulated program executes another.  Freestanding; MIT.  Format: elf(5), and
 * the x86-64 psABI's .note.gnu.property. */
#ifndef TALLY_VALGRIND_VSIM_PROGRAM_H
#define TALLY_VALGRIND_VSIM_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

/* Bytes at the beginning of a file that are inspected: linkers put the notes right behind the
 * headers. */
enum { VSIM_PROGRAM_HEAD = 4096 };

enum vsim_program {
	VSIM_PROGRAM_NO_ELF,
	VSIM_PROGRAM_X86_64,
	VSIM_PROGRAM_32_BITS,
	VSIM_PROGRAM_OTHER_MACHINE,
	/* its note says that it needs x86-64-v4; most programs that do have no such note */
	VSIM_PROGRAM_AVX512
};

/* Returns the kind of program from the first bytes of its file.  Accepts any bytes: damaged or
 * truncated parts count as absent. */
enum vsim_program vsim_program_look(const uint8_t *head, size_t size);

#endif
