/* Which kernel was recorded, by the records of its maps. */
#ifndef TALLY_PROFILE_KERNEL_IDENTITY_H
#define TALLY_PROFILE_KERNEL_IDENTITY_H

#include "abi/arch.h"
#include "abi/record.h"

#include <stdbool.h>
#include <stdint.h>

enum { TALLY_KERNEL_RELEASE_BYTES = 65 };

/* Whether a MMAP or MMAP2 record is of a kernel that is not the running one: a module of another release, which `release`
 * gets ("": the record tells none), or a symbol where KASLR can't have put the running kernel's. */
bool tally_kernel_is_another(const struct tally_record *record, char release[TALLY_KERNEL_RELEASE_BYTES]);

/* Whether the kernel of such a machine that has a symbol at `now` (0: not known) may have had it at `recorded`. */
bool tally_kernel_may_be_at(uint64_t recorded, uint64_t now, enum tally_arch arch);

/* Where the running kernel has a symbol; 0: nowhere, or it may not be known. */
uint64_t tally_kernel_running_address(const char *symbol);

#endif
