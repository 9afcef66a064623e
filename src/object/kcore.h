/* The running kernel's memory, as /proc/kcore shows it: an ELF core whose segments lie at the
 * kernel's addresses. */
#ifndef TALLY_OBJECT_KCORE_H
#define TALLY_OBJECT_KCORE_H

#include <stddef.h>
#include <stdint.h>

/* Reads `size` bytes at an address.  `path` is /proc/kcore, or for tests another 64-bit ELF file of
 * this machine's byte order.  0; -ENOENT, -EACCES, -EPERM …; -ENXIO: nothing is mapped there;
 * -ENOEXEC: no such file. */
int tally_kcore_read(const char *path, uint64_t address, void *bytes, size_t size);

#endif
