/* The signal handler maps zeros over each lost page.  For the first one, it also finds the file's
 * path in /proc/self/maps.  It parses the text byte by byte, because a signal handler can use
 * neither stdio nor the heap. */
#include "base/lost_pages.h"

#include "base/digits.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Signals are the process's, and so is this. */
static struct {
	atomic_size_t count;
	atomic_bool is_reported;
	size_t page_bytes;
	char path[PATH_MAX];
} lost;

/* A line of /proc/self/maps, read byte by byte: a signal handler can't use stdio. */
struct line {
	uint64_t start, end;
	unsigned field; /* 0: the start; 1: the end; 2 to 5: others; 6: the path */
	size_t length;  /* of the path */
	char last;
};

static void take_byte(struct line *line, char byte)
{
	int digit = tally_hexadecimal_value(byte);
	if (line->field == 6) {
		bool is_padding = byte == ' ' && !line->length;
		if (!is_padding && line->length < sizeof(lost.path) - 1)
			lost.path[line->length++] = byte;
	} else if (!line->field && byte == '-') {
		line->field = 1;
	} else if (byte == ' ') {
		line->field += line->last != ' ';
	} else if (!line->field && digit >= 0) {
		line->start = line->start << 4 | (unsigned)digit;
	} else if (line->field == 1 && digit >= 0) {
		line->end = line->end << 4 | (unsigned)digit;
	}
	line->last = byte;
}

/* Writes the path of the file that is mapped at the address. */
static void find_path(uint64_t address)
{
	char bytes[1024];
	struct line line = { 0 };
	bool found = false;
	ssize_t got = 0;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && !found && (got = read(fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; !found && i < got; i++) {
			if (bytes[i] != '\n') {
				take_byte(&line, bytes[i]);
				continue;
			}
			found = address >= line.start && address < line.end && line.length;
			if (!found)
				line = (struct line){ 0 };
		}
	}
	if (!found)
		line.length = 0;
	lost.path[line.length] = '\0';
	if (fd >= 0)
		close(fd);
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	const int saved = errno;
	uintptr_t address = (uintptr_t)info->si_addr & ~(lost.page_bytes - 1);
	(void)context;
	bool is_page = info->si_code == BUS_ADRERR;
	if (is_page && !atomic_fetch_add(&lost.count, 1))
		find_path(address);
	if (!is_page || mmap((void *)address, lost.page_bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		signal(number, SIG_DFL); /* the access is tried again, and ends the process */
	errno = saved;
}

void tally_lost_pages_survive(void)
{
	struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	lost.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}

bool tally_lost_pages_report(void)
{
	return !atomic_exchange(&lost.is_reported, true);
}

size_t tally_lost_pages(const char **path)
{
	size_t count = atomic_load(&lost.count);
	if (path)
		*path = *lost.path ? lost.path : "a mapped file";
	return count;
}
