/* Which programs the preloaded object can enter: see process_program.h.
 *
 * The file is read through windows of 256 bytes, so a usual program costs about ten system calls.
 * Each list has a limit, so no file costs more than a few hundred. */
#include "process/process_program.h"

#include "process/process_call.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#if defined(__x86_64__)
#define LOADER "ld-linux-x86-64.so.2"
enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
#define LOADER "ld-linux-aarch64.so.1"
enum { MACHINE = EM_AARCH64 };
#elif defined(__riscv)
#define LOADER "ld-linux-riscv64-lp64d.so.1"
enum { MACHINE = EM_RISCV };
#else /* the object is not built */
#define LOADER ""
enum { MACHINE = EM_NONE };
#endif

enum {
	WINDOW = 256,
	NAME = 64,             /* of a library or a symbol, as far as it is compared */
	SCRIPT_HEAD = 256,     /* the kernel's BINPRM_BUF_SIZE */
	SCRIPTS = 5,           /* the kernel follows as many interpreters */
	HEADERS_MOST = 1024,   /* the kernel refuses more than 65,536 bytes of them */
	DYNAMIC_MOST = 4096,
	CHAIN_MOST = 256,      /* symbols in a bucket of a hash table */
	NO_NEW_RIGHTS = 2      /* ST_NOSUID in statfs.f_flags */
};

static const char *const sanitizer_libraries[] = {
	"libasan.so", "libtsan.so", "libmsan.so", "liblsan.so", "libhwasan.so",
	"libclang_rt.asan", "libclang_rt.tsan", "libclang_rt.msan", "libclang_rt.lsan",
	"libclang_rt.hwasan",
};
static const char *const sanitizer_symbols[] = {
	"__asan_init", "__tsan_init", "__msan_init", "__lsan_init", "__hwasan_init", "__dfsan_init",
};

/* A part of the file. */
struct window {
	int fd;
	uint64_t at;
	uint64_t size;
	uint8_t bytes[WINDOW];
};

/* Copies up to `size` bytes (at most WINDOW) of the file from `at`.  Returns how many there are. */
static uint64_t get_some(struct window *window, uint64_t at, void *to, uint64_t size)
{
	if (at < window->at || at - window->at > window->size ||
	    size > window->size - (at - window->at)) {
		if (at > INT64_MAX)
			return 0;
		long count = process_call(SYS_pread64, window->fd, window->bytes, WINDOW, at);
		window->at = at;
		window->size = 0;
		if (count > 0)
			window->size = (uint64_t)count;
	}
	uint64_t offset = at - window->at;
	if (size > window->size - offset)
		size = window->size - offset;
	for (uint64_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = window->bytes[offset + i];
	return size;
}

static bool get(struct window *window, uint64_t at, void *to, uint64_t size)
{
	return get_some(window, at, to, size) == size;
}

static bool starts(const char *text, const char *with)
{
	for (; *with; text++, with++)
		if (*text != *with)
			return false;
	return true;
}

static bool equal(const char *one, const char *other)
{
	for (; *one == *other; one++, other++)
		if (!*one)
			return true;
	return false;
}

static const char *base_name(const char *path)
{
	const char *name = path;
	for (; *path; path++)
		if (*path == '/')
			name = path + 1;
	return name;
}

/* --- rights ---------------------------------------------------------------- */

/* True if the kernel sets AT_SECURE for the file: see cap_bprm_creds_from_file() in the kernel. */
static bool is_privileged(int fd, const struct stat *status)
{
	uint32_t user = (uint32_t)process_call(SYS_getuid), group = (uint32_t)process_call(SYS_getgid);
	uint32_t new_user = (uint32_t)process_call(SYS_geteuid),
		 new_group = (uint32_t)process_call(SYS_getegid);
	struct statfs system;
	bool gains = process_call(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 &&
		     !(process_call(SYS_fstatfs, fd, &system) == 0 &&
		       (system.f_flags & NO_NEW_RIGHTS));
	if (gains && (status->st_mode & S_ISUID))
		new_user = status->st_uid;
	if (gains && (status->st_mode & S_ISGID) && (status->st_mode & S_IXGRP))
		new_group = status->st_gid;
	if (new_user != user || new_group != group)
		return true;
	return gains && user &&
	       process_call(SYS_fgetxattr, fd, "security.capability", NULL, 0) > 0;
}

/* --- ELF ------------------------------------------------------------------- */

struct elf {
	struct window headers, dynamic, strings;
	Elf64_Ehdr header;
	/* from the program headers */
	char loader[PROCESS_PROGRAM_PATH];  /* "": none */
	uint64_t dynamic_at, dynamic_size;
	/* offsets in the file; 0: absent */
	uint64_t names, symbols, hash, gnu_hash;
};

static bool program_header(struct elf *elf, unsigned index, Elf64_Phdr *header)
{
	uint64_t at = elf->header.e_phoff + (uint64_t)index * sizeof(*header);
	return at >= elf->header.e_phoff && get(&elf->headers, at, header, sizeof(*header));
}

/* True if the notes name a Go program: "Go", type 4 (the build-id of cmd/link). */
static bool is_go_note(struct elf *elf, const Elf64_Phdr *part)
{
	static const uint8_t go[4] = { 'G', 'o', 0, 0 };
	uint64_t at = part->p_offset, end = at + part->p_filesz;
	for (unsigned count = 0; count < 16 && at < end; count++) {
		struct { Elf64_Nhdr head; uint8_t name[4]; } note;
		if (!get(&elf->strings, at, &note, sizeof(note)))
			return false;
		bool same = note.head.n_namesz == sizeof(go) && note.head.n_type == 4;
		for (unsigned i = 0; i < sizeof(go); i++)
			same &= note.name[i] == go[i];
		if (same)
			return true;
		at += sizeof(note.head) + ((note.head.n_namesz + 3ull) & ~3ull) +
		      ((note.head.n_descsz + 3ull) & ~3ull);
	}
	return false;
}

static bool read_program_headers(struct elf *elf, struct process_program *program)
{
	if (elf->header.e_phentsize != sizeof(Elf64_Phdr) || elf->header.e_phnum > HEADERS_MOST)
		return false;
	for (unsigned i = 0; i < elf->header.e_phnum; i++) {
		Elf64_Phdr header;
		if (!program_header(elf, i, &header))
			return false;
		if (header.p_type == PT_INTERP && !elf->loader[0]) {
			if (header.p_filesz < 2 || header.p_filesz > sizeof(elf->loader) ||
			    !get(&elf->strings, header.p_offset, elf->loader, header.p_filesz))
				return false;
			elf->loader[header.p_filesz - 1] = '\0';
		} else if (header.p_type == PT_DYNAMIC) {
			elf->dynamic_at = header.p_offset;
			elf->dynamic_size = header.p_filesz;
		} else if (header.p_type == PT_NOTE && is_go_note(elf, &header)) {
			program->is_go = true;
		}
	}
	return true;
}

/* Returns the offset in the file of an address; 0: it is in no segment. */
static uint64_t file_offset(struct elf *elf, uint64_t address)
{
	Elf64_Phdr header;
	for (unsigned i = 0; i < elf->header.e_phnum && program_header(elf, i, &header); i++)
		if (header.p_type == PT_LOAD && address >= header.p_vaddr &&
		    address - header.p_vaddr < header.p_filesz)
			return header.p_offset + (address - header.p_vaddr);
	return 0;
}

/* Reads the next entry of the dynamic section.  Returns false at its end. */
static bool next_dynamic(struct elf *elf, unsigned *index, Elf64_Dyn *entry)
{
	uint64_t offset = (uint64_t)*index * sizeof(*entry);
	if (*index >= DYNAMIC_MOST || offset >= elf->dynamic_size)
		return false;
	++*index;
	return get(&elf->dynamic, elf->dynamic_at + offset, entry, sizeof(*entry)) &&
	       entry->d_tag != DT_NULL;
}

/* Copies the beginning of a name of the dynamic string table. */
static void get_name(struct elf *elf, uint64_t offset, char name[NAME + 1])
{
	uint64_t size = 0;
	if (elf->names && offset <= UINT64_MAX - elf->names)
		size = get_some(&elf->strings, elf->names + offset, name, NAME);
	name[size] = '\0';
}

static bool symbol_is(struct elf *elf, uint64_t index, const char *wanted)
{
	Elf64_Sym symbol;
	char name[NAME + 1];
	if (!get(&elf->dynamic, elf->symbols + index * sizeof(symbol), &symbol, sizeof(symbol)))
		return false;
	get_name(elf, symbol.st_name, name);
	return symbol.st_shndx != SHN_UNDEF && equal(name, wanted);
}

/* Looks a symbol up in DT_GNU_HASH.  For most absent symbols one word of the filter says so. */
static bool gnu_hash_has(struct elf *elf, const char *wanted)
{
	struct { uint32_t buckets, first, filter_words, shift; } head;
	uint32_t hash = 5381, bucket, link;
	uint64_t word;
	for (const char *at = wanted; *at; at++)
		hash = hash * 33 + (uint8_t)*at;
	if (!get(&elf->dynamic, elf->gnu_hash, &head, sizeof(head)) || !head.buckets ||
	    !head.filter_words || head.shift >= 32)
		return false;
	uint64_t filter = elf->gnu_hash + sizeof(head);
	uint64_t buckets = filter + 8ull * head.filter_words;
	uint64_t chains = buckets + 4ull * head.buckets;
	if (!get(&elf->dynamic, filter + 8ull * (hash / 64 % head.filter_words), &word, 8) ||
	    !(word >> hash % 64 & word >> (hash >> head.shift) % 64 & 1))
		return false;
	if (!get(&elf->dynamic, buckets + 4ull * (hash % head.buckets), &bucket, 4) ||
	    bucket < head.first)
		return false;
	for (unsigned i = 0; i < CHAIN_MOST; i++) {
		uint64_t index = (uint64_t)bucket + i;
		if (!get(&elf->strings, chains + 4 * (index - head.first), &link, 4))
			return false;
		if ((link | 1) == (hash | 1) && symbol_is(elf, index, wanted))
			return true;
		if (link & 1)
			return false;
	}
	return false;
}

/* Looks a symbol up in DT_HASH. */
static bool hash_has(struct elf *elf, const char *wanted)
{
	struct { uint32_t buckets, chains; } head;
	uint32_t hash = 0, index;
	for (const char *at = wanted; *at; at++) {
		hash = (hash << 4) + (uint8_t)*at;
		hash = (hash ^ (hash & 0xf0000000) >> 24) & 0x0fffffff;
	}
	if (!get(&elf->dynamic, elf->hash, &head, sizeof(head)) || !head.buckets)
		return false;
	uint64_t at = elf->hash + sizeof(head) + 4ull * (hash % head.buckets);
	for (unsigned i = 0; i < CHAIN_MOST; i++) {
		if (!get(&elf->strings, at, &index, 4) || !index || index >= head.chains)
			return false;
		if (symbol_is(elf, index, wanted))
			return true;
		at = elf->hash + sizeof(head) + 4ull * head.buckets + 4ull * index;
	}
	return false;
}

static bool needs_library(struct elf *elf)
{
	Elf64_Dyn entry;
	for (unsigned i = 0; next_dynamic(elf, &i, &entry);)
		if (entry.d_tag == DT_NEEDED)
			return true;
	return false;
}

static bool has_sanitizer(struct elf *elf)
{
	Elf64_Dyn entry;
	char name[NAME + 1];
	for (unsigned i = 0; next_dynamic(elf, &i, &entry);) {
		if (entry.d_tag != DT_NEEDED)
			continue;
		get_name(elf, entry.d_un.d_val, name);
		for (unsigned k = 0; k < sizeof(sanitizer_libraries) / sizeof(char *); k++)
			if (starts(base_name(name), sanitizer_libraries[k]))
				return true;
	}
	for (unsigned k = 0; elf->symbols && k < sizeof(sanitizer_symbols) / sizeof(char *); k++) {
		if (elf->gnu_hash && gnu_hash_has(elf, sanitizer_symbols[k]))
			return true;
		if (!elf->gnu_hash && elf->hash && hash_has(elf, sanitizer_symbols[k]))
			return true;
	}
	return false;
}

/* True if the file is glibc's loader, run as a program. */
static bool is_loader(struct elf *elf)
{
	Elf64_Dyn entry;
	char name[NAME + 1];
	for (unsigned i = 0; next_dynamic(elf, &i, &entry);) {
		if (entry.d_tag != DT_SONAME)
			continue;
		get_name(elf, entry.d_un.d_val, name);
		return equal(name, LOADER);
	}
	return false;
}

static enum process_program_kind look_at_elf(int fd, const Elf64_Ehdr *header,
					     struct process_program *program)
{
	struct elf elf = { .headers.fd = fd, .dynamic.fd = fd, .strings.fd = fd, .header = *header };
	if (!read_program_headers(&elf, program))
		return PROCESS_PROGRAM_NO_FORMAT;
	Elf64_Dyn entry;
	for (unsigned i = 0; next_dynamic(&elf, &i, &entry);) {
		if (entry.d_tag == DT_STRTAB)
			elf.names = file_offset(&elf, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_SYMTAB)
			elf.symbols = file_offset(&elf, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_HASH)
			elf.hash = file_offset(&elf, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_GNU_HASH)
			elf.gnu_hash = file_offset(&elf, entry.d_un.d_ptr);
	}
	if (!elf.loader[0] && !is_loader(&elf))
		return PROCESS_PROGRAM_STATIC;
	if (elf.loader[0] && !equal(base_name(elf.loader), LOADER))
		return PROCESS_PROGRAM_OTHER_LIBC;
	if (elf.loader[0] && !needs_library(&elf))
		return PROCESS_PROGRAM_NO_LIBC;
	if (has_sanitizer(&elf))
		return PROCESS_PROGRAM_SANITIZER;
	return PROCESS_PROGRAM_ENTERED;
}

/* --- files ----------------------------------------------------------------- */

/* Finds the interpreter in a script's first line.  Returns false if the kernel would find none. */
static bool find_interpreter(const char *head, uint64_t size, char path[PROCESS_PROGRAM_PATH])
{
	uint64_t from = 2, to;
	while (from < size && (head[from] == ' ' || head[from] == '\t'))
		from++;
	for (to = from; to < size; to++)
		if (!head[to] || head[to] == ' ' || head[to] == '\t' || head[to] == '\n')
			break;
	/* A path that ends where the kernel stops reading may be cut. */
	if (to == from || to == SCRIPT_HEAD)
		return false;
	for (uint64_t i = from; i < to; i++)
		path[i - from] = head[i];
	path[to - from] = '\0';
	return true;
}

/* Sets the kind from an open file; if it is a script, sets `interpreter` and returns true. */
static bool look_at_file(int fd, struct process_program *program)
{
	union { char text[SCRIPT_HEAD]; uint8_t bytes[SCRIPT_HEAD]; Elf64_Ehdr header; } head;
	struct stat status;
	if (process_call(SYS_fstat, fd, &status) || !S_ISREG(status.st_mode)) {
		program->kind = PROCESS_PROGRAM_UNREADABLE;
		return false;
	}
	long size = process_call(SYS_pread64, fd, &head, sizeof(head), 0);
	if (size < 0) {
		program->kind = PROCESS_PROGRAM_UNREADABLE;
		return false;
	}
	program->kind = PROCESS_PROGRAM_NO_FORMAT;
	if (size > 2 && head.text[0] == '#' && head.text[1] == '!')
		return find_interpreter(head.text, (uint64_t)size, program->interpreter);
	if ((size_t)size < sizeof(Elf32_Ehdr) || !starts(head.text, ELFMAG))
		return false;
	if (is_privileged(fd, &status))
		program->kind = PROCESS_PROGRAM_PRIVILEGED;
	else if (head.bytes[EI_CLASS] == ELFCLASS32)
		program->kind = PROCESS_PROGRAM_32_BITS;
	else if (head.bytes[EI_CLASS] != ELFCLASS64 || head.bytes[EI_DATA] != ELFDATA2LSB ||
		 head.header.e_machine != MACHINE)
		program->kind = PROCESS_PROGRAM_OTHER_MACHINE;
	else if ((size_t)size >= sizeof(Elf64_Ehdr))
		program->kind = look_at_elf(fd, &head.header, program);
	return false;
}

/* Writes "/proc/self/fd/N": the one way to read what a descriptor with O_PATH is for. */
static void name_descriptor(int fd, char path[32])
{
	const char *folder = "/proc/self/fd/";
	unsigned length = 0, digits = 1, number = (unsigned)fd;
	while (folder[length]) {
		path[length] = folder[length];
		length++;
	}
	for (unsigned rest = number; rest >= 10; rest /= 10)
		digits++;
	path[length + digits] = '\0';
	for (; digits; digits--, number /= 10)
		path[length + digits - 1] = (char)('0' + number % 10);
}

void process_program_look(int directory, const char *path, int flags,
			  struct process_program *program)
{
	char descriptor[32];
	program->kind = PROCESS_PROGRAM_UNREADABLE;
	program->is_go = false;
	program->interpreter[0] = '\0';
	/* O_NONBLOCK: opening a FIFO does not wait. */
	int how = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	if (flags & AT_SYMLINK_NOFOLLOW)
		how |= O_NOFOLLOW;
	if (!path)
		return;
	if (!*path) {
		if (!(flags & AT_EMPTY_PATH) || directory < 0)
			return;
		uint8_t byte;
		if (process_call(SYS_pread64, directory, &byte, 1, 0) == 1) {
			if (!look_at_file(directory, program))
				return;
			path = NULL;
		} else {
			name_descriptor(directory, descriptor);
			path = descriptor;
		}
	}
	for (unsigned scripts = 0; scripts <= SCRIPTS; scripts++) {
		if (!path)
			path = program->interpreter;
		int fd = (int)process_call(SYS_openat, directory, path, how, 0);
		program->kind = PROCESS_PROGRAM_UNREADABLE;
		if (fd < 0)
			return;
		bool again = look_at_file(fd, program);
		process_call(SYS_close, fd);
		if (!again)
			return;
		path = NULL;
		directory = AT_FDCWD;
		how &= ~O_NOFOLLOW;
	}
	program->kind = PROCESS_PROGRAM_NO_FORMAT;
}

const char *process_program_reason(enum process_program_kind kind)
{
	switch (kind) {
	case PROCESS_PROGRAM_ENTERED:
		return NULL;
	case PROCESS_PROGRAM_UNREADABLE:
		return "can't be read";
	case PROCESS_PROGRAM_NO_FORMAT:
		return "has an unknown format";
	case PROCESS_PROGRAM_STATIC:
		return "is linked statically";
	case PROCESS_PROGRAM_NO_LIBC:
		return "uses no libc";
	case PROCESS_PROGRAM_OTHER_LIBC:
		return "uses another libc than glibc";
	case PROCESS_PROGRAM_32_BITS:
		return "is a 32-bit program";
	case PROCESS_PROGRAM_OTHER_MACHINE:
		return "is made for another architecture";
	case PROCESS_PROGRAM_PRIVILEGED:
		return "runs with other rights (set-user-ID)";
	case PROCESS_PROGRAM_SANITIZER:
		return "is built with a sanitizer";
	}
	return "can't be entered";
}
