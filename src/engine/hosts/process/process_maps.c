/* The process's mappings, as MMAP records.
 *
 * A sample means something only if tally knows the mapping that its addresses are in.  The object
 * must learn of mappings that others make: ld.so's calls of mmap(2) don't go through libc's
 * function, and dlopen(3) can't be replaced, because it looks at its caller's address (RUNPATH,
 * $ORIGIN).  So the object looks for new mappings when a sample needs them:
 *
 * - Before each sample, the handler looks whether the sample's address is in a known mapping, and
 *   whether ld.so's list of objects has grown (process_maps_sampled()).  If there is news, it asks
 *   the kernel and writes records of new mappings.  So the record precedes the sample, also in a
 *   constructor that dlopen() runs.
 * - Wrappers of mmap(2), mprotect(2) and mremap(2) tell executable memory at once.  JIT compilers
 *   call these.
 *
 * Where it can, it asks for single mappings (PROCMAP_QUERY): a new object's, or that at an address.
 * Otherwise it reads all of /proc/thread-self/maps.  That takes about 1 us for each mapping, so it
 * is limited to 2 % of the time.  Kernels before 6.11 lack PROCMAP_QUERY, so there a JIT compiler
 * with thousands of mappings may have samples in mappings without a record.
 *
 * Without /proc, the segments of the objects in ld.so's list become records.  The list may change
 * meanwhile, so process_vm_readv(2) reads it: it fails if memory is missing.
 *
 * `places` lists the mappings that have a record, by address.  Its lock is never waited for: if
 * it is taken, the next sample tries again. */
#include "process/process_agent.h"
#include "process/process_call.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>

enum {
	PLACES = 16384,        /* mappings; more get no record */
	LINE = PATH_MAX + 128, /* bytes of a line of /proc/PID/maps */
	OBJECTS_MOST = 4096,   /* in ld.so's list */
	SHARE = 50,            /* reading takes at most 1/50 of the time … */
	CREDIT_NS = 20000000,  /* … and as much more when there are many changes at once */
	NS_PER_S = 1000000000
};

/* A mapping.  Anonymous ones have inode 0. */
struct place {
	uint64_t start, end, offset, inode;
	uint32_t major, minor;
	bool is_code;
};

static struct places {
	unsigned count;
	struct place at[PLACES];
} tables[2], *places = &tables[0];

/* The pid of the process that holds the lock; 0: free.  A forked child takes over its parent's. */
static int32_t lock;
/* Changes that wrappers have noted, and how many of them have records.  Atomic. */
static uint32_t changes, told_changes;
/* The ring was too full for some records of the last reading. */
static bool is_incomplete;
/* How long reading may take now, and when that was computed. */
static int64_t credit_ns;
static uint64_t last_ns;

/* An object in ld.so's list: how its struct link_map begins, and how its name begins.  A new object
 * may get the memory of one that ld.so has unloaded, so the name counts. */
struct object {
	uint64_t base, name, dynamic, next;
	char text[256];
};
/* The list grows at its end.  The last object, as it was at the last reading. */
static struct {
	uint64_t address; /* 0: unknown */
	struct object link;
} last_object;

static char line[LINE];

static bool try_lock(void)
{
	int32_t holder = __atomic_load_n(&lock, __ATOMIC_RELAXED);
	if (holder == process_agent.pid)
		return false;
	return __atomic_compare_exchange_n(&lock, &holder, process_agent.pid, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void unlock(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static uint64_t now_ns(void)
{
	struct timespec now = { 0 };
	process_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* --- mappings with a record ------------------------------------------------- */

/* Returns the index of the first place that ends behind the address. */
static unsigned find(uint64_t address)
{
	unsigned low = 0, high = places->count;
	while (low < high) {
		unsigned middle = low + (high - low) / 2;
		if (places->at[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static bool is_code(uint64_t address)
{
	unsigned i = find(address);
	return i < places->count && places->at[i].start <= address && places->at[i].is_code;
}

/* True if both are mappings of the same part of a file, where they overlap. */
static bool agrees(const struct place *told, const struct place *place)
{
	if (told->inode != place->inode || told->major != place->major ||
	    told->minor != place->minor || (place->is_code && !told->is_code))
		return false;
	return !place->inode || told->start - told->offset == place->start - place->offset;
}

/* True if known places cover this one without a gap. */
static bool is_told(const struct place *place)
{
	uint64_t at = place->start;
	for (unsigned i = find(at); at < place->end; i++) {
		if (i >= places->count || places->at[i].start > at ||
		    !agrees(&places->at[i], place))
			return false;
		at = places->at[i].end;
	}
	return true;
}

/* Puts a place into the table, in the stead of those that it overlaps. */
static void insert(const struct place *place)
{
	unsigned from = find(place->start), to = from;
	while (to < places->count && places->at[to].start < place->end)
		to++;
	if (places->count - (to - from) >= PLACES)
		return;
	memmove(&places->at[from + 1], &places->at[to], (places->count - to) * sizeof(*place));
	places->at[from] = *place;
	places->count = places->count - (to - from) + 1;
}

static void tell(struct process_thread *thread, const struct place *place, uint32_t protection,
		 uint32_t flags, const char *path)
{
	const struct tally_engine_mapping mapping = {
		.address = place->start,
		.length = place->end - place->start,
		/* the kernel's offset of anonymous memory is its address */
		.file_offset = strcmp(path, "//anon") ? place->offset : place->start,
		.major = place->major,
		.minor = place->minor,
		.inode = place->inode,
		.protection = protection,
		.flags = flags,
		.path = path,
	};
	tally_engine_mmap_record(thread->task, &mapping);
}

/* A lost record of a mapping would spoil all samples in it, so half of the ring must be free. */
static bool has_room(const struct process_thread *thread)
{
	const struct tally_user_page *page = thread->ring_page;
	uint64_t used = __atomic_load_n(&page->data_head, __ATOMIC_RELAXED) -
			__atomic_load_n(&page->data_tail, __ATOMIC_RELAXED);
	return used <= (uint64_t)process_agent.plan->ring_pages * TALLY_PLAN_PAGE / 2;
}

/* --- /proc ------------------------------------------------------------------ */

static uint64_t hexadecimal(const char **text)
{
	uint64_t value = 0;
	for (;; ++*text) {
		unsigned digit;
		if (**text >= '0' && **text <= '9')
			digit = (unsigned)(**text - '0');
		else if (**text >= 'a' && **text <= 'f')
			digit = (unsigned)(**text - 'a') + 10;
		else
			return value;
		value = value << 4 | digit;
	}
}

static uint64_t decimal(const char **text)
{
	uint64_t value = 0;
	for (; **text >= '0' && **text <= '9'; ++*text)
		value = value * 10 + (uint64_t)(**text - '0');
	return value;
}

/* Turns the name in a line into the name in a record, in place. */
static const char *record_name(char *name)
{
	char *to = name;
	if (!*name || !strncmp(name, "[anon", 5) || !strncmp(name, "[stack:", 7))
		return "//anon";
	for (const char *from = name; *from; to++) {
		if (!strncmp(from, "\\012", 4)) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
	return name;
}

/* Parses "START-END PROT OFFSET MAJOR:MINOR INODE   NAME".  Returns the name, or NULL. */
static char *parse(char *text, struct place *place, uint32_t *protection, uint32_t *flags)
{
	const char *at = text;
	*place = (struct place){ 0 };
	place->start = hexadecimal(&at);
	place->end = hexadecimal((at++, &at));
	if (at[0] != ' ' || strlen(at) < 6 || place->end <= place->start)
		return NULL;
	place->is_code = at[3] == 'x';
	*protection = place->is_code ? PROT_EXEC : 0;
	if (at[1] == 'r')
		*protection |= PROT_READ;
	if (at[2] == 'w')
		*protection |= PROT_WRITE;
	*flags = at[4] == 's' ? MAP_SHARED : MAP_PRIVATE;
	at += 6;
	place->offset = hexadecimal(&at);
	place->major = (uint32_t)hexadecimal((at++, &at));
	place->minor = (uint32_t)hexadecimal((at++, &at));
	place->inode = decimal((at++, &at));
	while (*at == ' ')
		at++;
	return text + (at - text);
}

/* Who takes the lines of a reading. */
struct reader {
	void (*take)(const struct reader *reader, char *text);
	struct process_thread *thread;
	struct places *new;
	process_maps_taker *taker;
	void *data;
	bool with_data; /* list_line(): also what isn't code */
};

/* Adds a line's mapping to the new table, and writes its record if it is new. */
static void take_line(const struct reader *reader, char *text)
{
	struct process_thread *thread = reader->thread;
	struct places *new = reader->new;
	struct place place;
	uint32_t protection, flags;
	char *name = parse(text, &place, &protection, &flags);
	if (!name || (!place.is_code && !process_agent.wants_data_maps) || new->count >= PLACES)
		return;
	bool is_new = !is_told(&place);
	if (is_new && !has_room(thread)) {
		is_incomplete = true;
		return;
	}
	new->at[new->count++] = place;
	if (is_new)
		tell(thread, &place, protection, flags, record_name(name));
}

static void list_line(const struct reader *reader, char *text)
{
	struct tally_engine_mapping mapping = { 0 };
	struct place place;
	char *name = parse(text, &place, &mapping.protection, &mapping.flags);
	if (!name || !(place.is_code || reader->with_data))
		return;
	mapping.address = place.start;
	mapping.length = place.end - place.start;
	mapping.file_offset = place.offset;
	mapping.major = place.major;
	mapping.minor = place.minor;
	mapping.inode = place.inode;
	mapping.path = record_name(name);
	reader->taker(reader->data, &mapping);
}

/* Reads the lines of an open file.  `line` has the one that is not complete yet. */
static void read_lines(const struct reader *reader, int fd)
{
	size_t length = 0;
	for (;;) {
		long count = process_call(SYS_read, fd, line + length, sizeof(line) - 1 - length);
		if (count == -EINTR)
			continue;
		if (count <= 0)
			return;
		length += (size_t)count;
		char *from = line, *end;
		line[length] = '\0';
		while ((end = memchr(from, '\n', length - (size_t)(from - line)))) {
			*end = '\0';
			reader->take(reader, from);
			from = end + 1;
		}
		length -= (size_t)(from - line);
		/* a line that is longer than any can be: skip it */
		if (length == sizeof(line) - 1)
			length = 0;
		memmove(line, from, length);
	}
}

/* Writes records of new mappings, and replaces the table.  Returns false without /proc. */
static bool read_maps(struct process_thread *thread)
{
	struct places *new = places == &tables[0] ? &tables[1] : &tables[0];
	const struct reader reader = { .take = take_line, .thread = thread, .new = new };
	int fd = (int)process_call(SYS_openat, AT_FDCWD, "/proc/thread-self/maps",
				   O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	new->count = 0;
	read_lines(&reader, fd);
	process_call(SYS_close, fd);
	if (new->count)
		places = new;
	return new->count > 0;
}

void process_maps_list(process_maps_taker *taker, void *data, bool with_data)
{
	const struct reader reader = {
		.take = list_line, .taker = taker, .data = data, .with_data = with_data
	};
	if (!try_lock())
		return;
	int fd = (int)process_call(SYS_openat, AT_FDCWD, "/proc/thread-self/maps",
				   O_RDONLY | O_CLOEXEC, 0);
	if (fd >= 0) {
		read_lines(&reader, fd);
		process_call(SYS_close, fd);
	}
	unlock();
}

/* --- one mapping ------------------------------------------------------------ */

/* PROCMAP_QUERY, since Linux 6.11: linux/fs.h */
struct query {
	uint64_t size, flags, address; /* in */
	uint64_t start, end, protection, page_size, offset, inode;
	uint32_t major, minor;
	uint32_t name_size, build_id_size; /* in and out */
	uint64_t name, build_id;           /* in */
};
/* A test defines another request, which the kernel does not know. */
#ifndef PROCESS_MAPS_QUERY
#define PROCESS_MAPS_QUERY 0xc0686611
#endif
enum {
	QUERY = PROCESS_MAPS_QUERY,
	QUERY_SHARED = 8,
	/* flags: executable, or the next one, of a file */
	QUERY_NEXT_CODE = 0x04 | 0x10 | 0x20
};
_Static_assert(sizeof(struct query) == (QUERY >> 16 & 0x3fff), "the size is in the request");

/* Asks the kernel for a mapping; its name goes to `line`.  Returns 0, -ENOENT if there is none, or
 * another error if the kernel can't say. */
static int ask(uint64_t address, uint64_t flags, struct query *query)
{
	*query = (struct query){ .size = sizeof(*query),
				 .flags = flags,
				 .address = address,
				 .name = (uint64_t)(uintptr_t)line,
				 .name_size = PATH_MAX };
	int fd = (int)process_call(SYS_openat, AT_FDCWD, "/proc/thread-self/maps",
				   O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	line[0] = '\0';
	long result = process_call(SYS_ioctl, fd, QUERY, query);
	process_call(SYS_close, fd);
	if (!query->name_size)
		line[0] = '\0';
	return (int)result;
}

static void tell_answer(struct process_thread *thread, const struct query *answer)
{
	const struct place place = { .start = answer->start,
				     .end = answer->end,
				     .offset = answer->offset,
				     .inode = answer->inode,
				     .major = answer->major,
				     .minor = answer->minor,
				     .is_code = answer->protection & PROT_EXEC };
	if ((!place.is_code && !process_agent.wants_data_maps) || is_told(&place))
		return;
	tell(thread, &place, answer->protection & (PROT_READ | PROT_WRITE | PROT_EXEC),
	     answer->protection & QUERY_SHARED ? MAP_SHARED : MAP_PRIVATE, record_name(line));
	insert(&place);
}

/* Tells the mapping at an address, with the lock held.  Its cost does not depend on their number.
 * Returns false if the kernel can't say, or if there is no room. */
static bool tell_at(struct process_thread *thread, uint64_t address)
{
	struct query query;
	if (places->count >= PLACES || !has_room(thread))
		return false;
	int error = ask(address, 0, &query);
	if (!error)
		tell_answer(thread, &query);
	return !error || error == -ENOENT; /* unmapped meanwhile */
}

/* Tells a file's code between two addresses in the same way.  Returns false also if there is
 * none. */
static bool tell_code(struct process_thread *thread, uint64_t from, uint64_t to)
{
	bool found = false;
	while (from < to) {
		struct query query;
		if (places->count >= PLACES || !has_room(thread))
			return false;
		int error = ask(from, QUERY_NEXT_CODE, &query);
		if (error && error != -ENOENT)
			return false;
		if (error || query.start >= to)
			break;
		tell_answer(thread, &query);
		found = true;
		from = query.end;
	}
	return found;
}

/* --- ld.so's list ----------------------------------------------------------- */

/* Copies memory that may be unmapped meanwhile.  Returns false if it is. */
static bool copy(uint64_t from, void *to, size_t size)
{
	const struct iovec local = { to, size }, remote = { (void *)(uintptr_t)from, size };
	return process_call(SYS_process_vm_readv, process_agent.pid, &local, 1, &remote, 1, 0) ==
	       (long)size;
}

/* Copies an object.  `name`: the address of its name; 0: without its name. */
static bool copy_object(uint64_t from, uint64_t name, struct object *link)
{
	const size_t size = offsetof(struct object, text);
	const struct iovec local = { link, sizeof(*link) },
			   remote[] = { { (void *)(uintptr_t)from, size },
					{ (void *)(uintptr_t)name, sizeof(link->text) } };
	*link = (struct object){ 0 };
	/* behind a short name the memory may end: then less is copied */
	long copied = process_call(SYS_process_vm_readv, process_agent.pid, &local, 1, remote,
				   name ? 2 : 1, 0);
	size_t length = strnlen(link->text, sizeof(link->text));
	memset(link->text + length, 0, sizeof(link->text) - length);
	return copied >= (long)size;
}

/* True if an object was added to ld.so's list, or the last one was removed. */
static bool has_new_object(void)
{
	struct object link;
	if (!last_object.address)
		return false;
	return !copy_object(last_object.address, last_object.link.name, &link) ||
	       memcmp(&link, &last_object.link, sizeof(link));
}

static void find_last_object(void)
{
	uint64_t address = (uint64_t)(uintptr_t)_r_debug.r_map;
	struct object link;
	/* from the last one on, if it is still there */
	if (last_object.address && copy_object(last_object.address, 0, &link) &&
	    link.base == last_object.link.base && link.dynamic == last_object.link.dynamic)
		address = last_object.address;
	last_object.address = 0;
	for (unsigned i = 0; i < OBJECTS_MOST && address; i++) {
		/* If a filter forbids the call, only samples at unknown addresses find objects. */
		if (!copy_object(address, 0, &link))
			return;
		uint64_t next = link.next;
		if (!next && copy_object(address, link.name, &link)) {
			last_object.address = address;
			last_object.link = link;
		}
		address = next;
	}
}

/* Tells only objects that were added to the list.  Returns false if more has changed, or if the
 * kernel can't say. */
static bool tell_new_objects(struct process_thread *thread)
{
	struct object link, before = last_object.link;
	if (!last_object.address || !places->count || process_agent.wants_data_maps ||
	    !copy_object(last_object.address, before.name, &link))
		return false;
	before.next = link.next;
	if (memcmp(&link, &before, sizeof(link)))
		return false;
	for (unsigned i = 0; i < OBJECTS_MOST && link.next; i++) {
		uint64_t address = link.next;
		/* the dynamic section is behind the code, as linkers arrange them */
		if (!copy_object(address, 0, &link) ||
		    !tell_code(thread, link.base, link.dynamic) ||
		    !copy_object(address, link.name, &link))
			return false;
		last_object.address = address;
		last_object.link = link;
	}
	return true;
}

/* --- without /proc ---------------------------------------------------------- */

/* Puts the path of the program itself into `line`. */
static bool name_program(void)
{
	const char *path = (const char *)getauxval(AT_EXECFN);
	long length = 1;
	if (!path || strlen(path) > PATH_MAX)
		return false;
	while (!strncmp(path, "./", 2))
		path += 2;
	line[0] = '\0';
	if (*path != '/') {
		length = process_call(SYS_getcwd, line, PATH_MAX);
		if (length < 1 || (size_t)length + 1 + strlen(path) > sizeof(line))
			return false;
		line[length - 1] = '/';
		line[length++] = '\0';
	}
	strcpy(line + length - 1, path);
	return true;
}

/* Puts an object's path into `line`. */
static bool name_object(const struct object *link)
{
	uint64_t kernels = getauxval(AT_SYSINFO_EHDR);
	if (kernels && link->base == kernels) {
		strcpy(line, "[vdso]");
		return true;
	}
	/* a page at a time, since the next one may not be mapped */
	for (size_t length = 0; length < PATH_MAX;) {
		uint64_t from = link->name + length;
		size_t piece = TALLY_PLAN_PAGE - from % TALLY_PLAN_PAGE;
		if (piece > PATH_MAX - length)
			piece = PATH_MAX - length;
		if (!copy(from, line + length, piece))
			return false;
		if (memchr(line + length, '\0', piece))
			return line[0] == '/';
		length += piece;
	}
	return false;
}

static void tell_segment(struct process_thread *thread, uint64_t base, const ElfW(Phdr) * part,
			 const struct stat *file)
{
	const uint64_t page = TALLY_PLAN_PAGE - 1;
	const struct place place = {
		.start = (base + part->p_vaddr) & ~page,
		.end = (base + part->p_vaddr + part->p_memsz + page) & ~page,
		.offset = part->p_offset & ~page,
		.inode = file->st_ino,
		.major = major(file->st_dev),
		.minor = minor(file->st_dev),
		.is_code = part->p_flags & PF_X,
	};
	uint32_t protection = place.is_code ? PROT_EXEC : 0;
	if (part->p_flags & PF_R)
		protection |= PROT_READ;
	if (part->p_flags & PF_W)
		protection |= PROT_WRITE;
	if (place.end <= place.start || is_told(&place) ||
	    (!place.is_code && !process_agent.wants_data_maps))
		return;
	if (!has_room(thread)) {
		is_incomplete = true;
		return;
	}
	insert(&place);
	tell(thread, &place, protection, MAP_PRIVATE, line);
}

/* Tells an object's segments.  `headers`: the address of its program headers. */
static void tell_segments(struct process_thread *thread, uint64_t base, uint64_t headers,
			  unsigned count)
{
	struct stat file = { 0 };
	if (line[0] == '/' && process_call(SYS_newfstatat, AT_FDCWD, line, &file, 0))
		file = (struct stat){ 0 };
	for (unsigned i = 0; i < count; i++) {
		ElfW(Phdr) part;
		if (!copy(headers + i * sizeof(part), &part, sizeof(part)))
			return;
		if (part.p_type == PT_LOAD)
			tell_segment(thread, base, &part, &file);
	}
}

static void tell_objects(struct process_thread *thread)
{
	uint64_t address = (uint64_t)(uintptr_t)_r_debug.r_map;
	struct object link;
	bool is_program = true;
	for (unsigned i = 0; i < OBJECTS_MOST && address; i++, is_program = false) {
		ElfW(Ehdr) header;
		if (!copy_object(address, 0, &link))
			return;
		address = link.next;
		if (is_program) {
			if (name_program())
				tell_segments(thread, link.base, getauxval(AT_PHDR),
					      (unsigned)getauxval(AT_PHNUM));
		} else if (name_object(&link) && copy(link.base, &header, sizeof(header)) &&
			   !memcmp(header.e_ident, ELFMAG, SELFMAG) &&
			   header.e_phentsize == sizeof(ElfW(Phdr))) {
			tell_segments(thread, link.base, link.base + header.e_phoff,
				      header.e_phnum);
		}
	}
}

/* --- when ------------------------------------------------------------------- */

/* True if reading is within its part of the time. */
static bool may_read(uint64_t ns)
{
	if (last_ns)
		credit_ns += (int64_t)((ns - last_ns) / SHARE);
	if (!last_ns || credit_ns > CREDIT_NS)
		credit_ns = CREDIT_NS;
	last_ns = ns;
	return credit_ns > 0;
}

/* Tells all mappings that are new, with the lock held. */
static void tell_all(struct process_thread *thread)
{
	uint32_t seen = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
	uint64_t from_ns = now_ns();
	if (!has_room(thread) || !may_read(from_ns))
		return;
	/* before reading, so that the next look finds objects that come meanwhile */
	find_last_object();
	is_incomplete = false;
	if (!read_maps(thread))
		tell_objects(thread);
	told_changes = seen;
	credit_ns -= (int64_t)(now_ns() - from_ns);
}

/* Tells what has changed, with the lock held. */
static void tell_news(struct process_thread *thread)
{
	bool only_objects = !is_incomplete &&
			    __atomic_load_n(&changes, __ATOMIC_RELAXED) == told_changes;
	if (!has_room(thread) || (only_objects && tell_new_objects(thread)))
		return;
	tell_all(thread);
}

static bool has_changed(void)
{
	return is_incomplete || __atomic_load_n(&changes, __ATOMIC_RELAXED) != told_changes ||
	       has_new_object();
}

void process_maps_tell(struct process_thread *thread, bool all)
{
	if (!process_agent.wants_maps || !thread->ring_page || !try_lock())
		return;
	if (all) {
		places->count = 0;
		last_ns = 0;
	}
	if (all)
		tell_all(thread);
	else if (has_changed())
		tell_news(thread);
	unlock();
}

void process_maps_sampled(struct process_thread *thread, uint64_t ip)
{
	if (!process_agent.wants_maps || !thread->ring_page || !try_lock())
		return;
	if (has_changed())
		tell_news(thread);
	if (!is_code(ip) && !tell_at(thread, ip))
		tell_all(thread);
	unlock();
}

/* True if all of it is known as anonymous code.  Files don't count: ld.so may have unmapped them
 * since. */
static bool is_known_code(const struct place *place)
{
	uint64_t at = place->start;
	for (unsigned i = find(at); at < place->end && i < places->count; i++) {
		if (places->at[i].start > at || !places->at[i].is_code || places->at[i].inode)
			break;
		at = places->at[i].end;
	}
	return at >= place->end;
}

/* Tells what a call changed. */
static bool tell_change(struct process_thread *thread, const struct place *place, int protection,
			int flags)
{
	const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
	if (!has_room(thread) || !try_lock())
		return false;
	bool is_told_now = true;
	/* reading all drops unmapped places from a full table */
	if (places->count >= PLACES) {
		is_told_now = false;
	} else if ((flags & anonymous) == anonymous) {
		tell(thread, place, (uint32_t)protection, MAP_PRIVATE, "//anon");
		insert(place);
	} else if (flags || !place->is_code || !is_known_code(place)) {
		is_told_now = tell_at(thread, place->start);
	}
	unlock();
	return is_told_now;
}

void process_maps_changed(const void *address, size_t size, int protection, int flags)
{
	struct process_thread *thread;
	bool code = protection & PROT_EXEC;
	if (!process_agent.wants_maps || (!code && !process_agent.wants_data_maps) ||
	    !(thread = process_self()) || !thread->ring_page)
		return;
	const uint64_t page = TALLY_PLAN_PAGE - 1;
	const struct place place = { .start = (uint64_t)(uintptr_t)address & ~page,
				     .end = ((uint64_t)(uintptr_t)address + size + page) & ~page,
				     .is_code = code };
	uint64_t mask = process_enter_alone(thread);
	if (!tell_change(thread, &place, protection, flags)) {
		__atomic_fetch_add(&changes, 1, __ATOMIC_RELEASE);
		process_maps_tell(thread, false);
	}
	process_host_settle(thread);
	process_leave_alone(thread, mask);
}

void process_maps_moved(const void *from, const void *to, size_t size)
{
	if (!process_agent.wants_maps || !process_self())
		return;
	bool was_code = true;
	uint64_t mask = process_enter_alone(process_own);
	if (try_lock()) {
		was_code = is_code((uint64_t)(uintptr_t)from);
		unlock();
	}
	process_leave_alone(process_own, mask);
	if (was_code)
		process_maps_changed(to, size, PROT_EXEC, 0);
}
