/* libelf and libzstd for the command `tally`: each function has a definition here that loads the
 * library at the first call and passes the call on.  Linked in the usual way the two (and zlib,
 * which libelf needs) cost a sixth of the time of `tally stat true`, which calls neither.
 *
 * Only the command links this file.  Tests and libtally link the libraries themselves, and the code
 * that calls them does not see the difference.  A library that is missing ends the process: callers
 * can't tell it from a file that has no symbols.  Commands that do need files load both at their
 * start, before anything is done. */
#pragma GCC visibility push(hidden)
#include <gelf.h>
#include <libelf.h>
#include <zstd.h>
#include <zstd_errors.h>
#pragma GCC visibility pop

#include "base/environment.h"
#include "base/loaded.h"
#include "base/terminal.h"
#include "base/text.h"
#include "command/command.h"
#include "command/late_libraries.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

struct late_library {
	const char *name, *package;
	const char *needs; /* a library that it loads itself, or NULL */
	_Atomic(void *) handle;
};

static struct late_library elf = { .name = "libelf.so.1", .package = "libelf1",
				   .needs = "libz.so.1" };
static struct late_library zstd = { .name = "libzstd.so.1", .package = "libzstd1" };

static void give_up(const struct late_library *library)
{
	const char *problem = tally_loaded_problem(library->name);
	if (problem)
		tally_say("tally: %s", problem);
	else
		tally_say("tally: %s is not installed.  On Debian: apt-get install %s",
			  library->name, library->package);
	_exit(TALLY_EXIT_FAILURE);
}

/* Without trust in the environment the folder of the C library comes first, also for the library
 * that this one needs: the dynamic linker would search that in LD_LIBRARY_PATH.  Then come the
 * dynamic linker's own paths, if there is no such variable. */
static void *load(struct late_library *library)
{
	void *handle = atomic_load_explicit(&library->handle, memory_order_acquire);
	if (handle)
		return handle;
	if (library->needs && tally_environment_distrust())
		tally_loaded_open(library->needs);
	handle = tally_loaded_open_needed(library->name);
	if (!handle)
		give_up(library);
	/* Two threads get the same handle. */
	atomic_store_explicit(&library->handle, handle, memory_order_release);
	return handle;
}

static void *find(struct late_library *library, const char *name)
{
	void *function = dlsym(load(library), name);
	if (!function)
		give_up(library);
	return function;
}

void tally_late_libraries_load(void)
{
	load(&elf);
	load(&zstd);
}

/* Defines the function `name` of a library. */
#define FUNCTION(library, type, name, parameters, arguments) \
	type name parameters \
	{ \
		static _Atomic(void *) found; \
		void *address = atomic_load_explicit(&found, memory_order_relaxed); \
		type(*function) parameters; \
		if (!address) { \
			address = find(&(library), #name); \
			atomic_store_explicit(&found, address, memory_order_relaxed); \
		} \
		/* C has no cast between the two kinds of pointers */ \
		memcpy(&function, &address, sizeof(function)); \
		return function arguments; \
	}

/* clang-format off */
FUNCTION(elf, unsigned, elf_version, (unsigned version), (version))
FUNCTION(elf, Elf *, elf_begin, (int fd, Elf_Cmd command, Elf *archive), (fd, command, archive))
FUNCTION(elf, Elf *, elf_memory, (char *image, size_t size), (image, size))
FUNCTION(elf, int, elf_end, (Elf *file), (file))
FUNCTION(elf, Elf_Kind, elf_kind, (Elf *file), (file))
FUNCTION(elf, int, elf_getphdrnum, (Elf *file, size_t *count), (file, count))
FUNCTION(elf, int, elf_getshdrnum, (Elf *file, size_t *count), (file, count))
FUNCTION(elf, int, elf_getshdrstrndx, (Elf *file, size_t *index), (file, index))
FUNCTION(elf, Elf_Scn *, elf_getscn, (Elf *file, size_t index), (file, index))
FUNCTION(elf, Elf_Scn *, elf_nextscn, (Elf *file, Elf_Scn *section), (file, section))
FUNCTION(elf, size_t, elf_ndxscn, (Elf_Scn *section), (section))
FUNCTION(elf, Elf_Data *, elf_rawdata, (Elf_Scn *section, Elf_Data *data), (section, data))
FUNCTION(elf, Elf_Data *, elf_getdata_rawchunk,
	 (Elf *file, int64_t offset, size_t size, Elf_Type type), (file, offset, size, type))
FUNCTION(elf, char *, elf_strptr, (Elf *file, size_t section, size_t offset),
	 (file, section, offset))
FUNCTION(elf, int, elf_compress, (Elf_Scn *section, int type, unsigned flags),
	 (section, type, flags))
FUNCTION(elf, int, elf_compress_gnu, (Elf_Scn *section, int compress, unsigned flags),
	 (section, compress, flags))
FUNCTION(elf, GElf_Ehdr *, gelf_getehdr, (Elf *file, GElf_Ehdr *out), (file, out))
FUNCTION(elf, GElf_Phdr *, gelf_getphdr, (Elf *file, int index, GElf_Phdr *out),
	 (file, index, out))
FUNCTION(elf, GElf_Shdr *, gelf_getshdr, (Elf_Scn *section, GElf_Shdr *out), (section, out))
FUNCTION(elf, GElf_Chdr *, gelf_getchdr, (Elf_Scn *section, GElf_Chdr *out), (section, out))

FUNCTION(zstd, ZSTD_CCtx *, ZSTD_createCCtx, (void), ())
FUNCTION(zstd, size_t, ZSTD_freeCCtx, (ZSTD_CCtx *context), (context))
FUNCTION(zstd, size_t, ZSTD_CCtx_setParameter,
	 (ZSTD_CCtx *context, ZSTD_cParameter parameter, int value), (context, parameter, value))
FUNCTION(zstd, size_t, ZSTD_compress2,
	 (ZSTD_CCtx *context, void *out, size_t room, const void *bytes, size_t size),
	 (context, out, room, bytes, size))
FUNCTION(zstd, size_t, ZSTD_compressBound, (size_t size), (size))
FUNCTION(zstd, int, ZSTD_maxCLevel, (void), ())
FUNCTION(zstd, ZSTD_DStream *, ZSTD_createDStream, (void), ())
FUNCTION(zstd, size_t, ZSTD_freeDStream, (ZSTD_DStream *stream), (stream))
FUNCTION(zstd, size_t, ZSTD_DCtx_reset, (ZSTD_DCtx *context, ZSTD_ResetDirective what),
	 (context, what))
FUNCTION(zstd, size_t, ZSTD_decompressStream,
	 (ZSTD_DStream *stream, ZSTD_outBuffer *out, ZSTD_inBuffer *in), (stream, out, in))
FUNCTION(zstd, size_t, ZSTD_decompress, (void *out, size_t room, const void *bytes, size_t size),
	 (out, room, bytes, size))
FUNCTION(zstd, unsigned long long, ZSTD_getFrameContentSize, (const void *bytes, size_t size),
	 (bytes, size))
FUNCTION(zstd, unsigned, ZSTD_isError, (size_t code), (code))
FUNCTION(zstd, ZSTD_ErrorCode, ZSTD_getErrorCode, (size_t code), (code))
FUNCTION(zstd, const char *, ZSTD_getErrorName, (size_t code), (code))
/* clang-format on */
