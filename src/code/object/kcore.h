/* The running kernel's memory through /proc/kcore: an ELF core file whose segments have the
 * kernel's addresses. */
#ifndef TALLY_OBJECT_KCORE_H
#define TALLY_OBJECT_KCORE_H

#include <stddef.h>
#include <stdint.h>

/* Reads `size` bytes at a kernel address.  `path` is /proc/kcore; tests use another 64-bit ELF file
 * of this machine's byte order.  Returns 0; -ENOENT, -EACCES, -EPERM …; -ENXIO when nothing is
 * mapped there; -ENOEXEC when the file is not such an ELF file. */
int tally_kcore_read(const char *path, uint64_t address, void *bytes, size_t size);

#endif
