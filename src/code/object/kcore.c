/* Opens the core file for each read, and searches its program headers for the segment that holds
 * all requested bytes. */
#include "object/object.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Reads exactly `size` bytes or fails: unmapped kernel memory reads as an error. */
static int read_at(int fd, uint64_t offset, void *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = pread(fd, (char *)bytes + done, size - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -ENXIO;
		done += (size_t)got;
	}
	return 0;
}

static int read_segments(int fd, uint64_t address, void *bytes, size_t size)
{
	Elf64_Ehdr header;
	int result = read_at(fd, 0, &header, sizeof(header));
	if (result == -EPERM)
		return -EPERM;
	if (result < 0 || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
		return -ENOEXEC;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr segment;
		result = read_at(fd, header.e_phoff + i * sizeof(segment), &segment,
				 sizeof(segment));
		if (result < 0)
			return result;
		uint64_t from = address - segment.p_vaddr;
		if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
		    from < segment.p_filesz && size <= segment.p_filesz - from)
			return read_at(fd, segment.p_offset + from, bytes, size);
	}
	return -ENXIO;
}

int tally_kcore_read(const char *path, uint64_t address, void *bytes, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int result = read_segments(fd, address, bytes, size);
	close(fd);
	return result;
}
