/* Which kernel was recorded, judged by the records of its maps. */
#ifndef TALLY_NAMING_KERNEL_IDENTITY_H
#define TALLY_NAMING_KERNEL_IDENTITY_H

#include "abi/arch.h"
#include "abi/record.h"

#include <stdbool.h>
#include <stdint.h>

enum { TALLY_KERNEL_RELEASE_BYTES = 65 };

/* True if a MMAP or MMAP2 record is of a module of another release than the running kernel's; sets
 * `release` to it. */
bool tally_kernel_module_is_anothers(const struct tally_record *record,
				     char release[TALLY_KERNEL_RELEASE_BYTES]);

/* Returns the symbol whose address a record of the kernel's map tells, "_text" or "_stext"; NULL:
 * none. */
const char *tally_kernel_map_symbol(const struct tally_record *record);

/* True if a kernel of this architecture with a symbol at `now` (0: not known) may have had it at
 * `recorded`. */
bool tally_kernel_may_be_at(uint64_t recorded, uint64_t now, enum tally_arch arch);

/* Returns the address of a symbol in the running kernel; 0: there is none, or it is hidden. */
uint64_t tally_kernel_running_address(const char *symbol);

#endif
