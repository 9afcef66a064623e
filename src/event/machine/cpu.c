/* Parsers of CPU lists and of /proc/cpuinfo, which take text, and the functions that read the
 * files.  At the end, a socket for uevents tells when CPUs come or go. */
#include "machine/machine.h"

#include "base/buffer.h"
#include "base/extremes.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct cpu_parser {
	const char *text, *at;
	struct tally_error *err;
};

static void skip_blanks(struct cpu_parser *parser)
{
	while (*parser->at && isspace((unsigned char)*parser->at))
		parser->at++;
}

static int list_error(struct cpu_parser *parser, const char *wanted)
{
	tally_error_set(parser->err, -EINVAL,
			"'%.200s' is no list of CPUs like 0-3,7: expected %s at column %zu",
			parser->text, wanted, (size_t)(parser->at - parser->text) + 1);
	if (parser->err)
		parser->err->position = (int)(parser->at - parser->text);
	return -EINVAL;
}

static int parse_number(struct cpu_parser *parser, unsigned *out)
{
	const char *start = parser->at;
	unsigned number = 0;
	if (!isdigit((unsigned char)*parser->at))
		return list_error(parser, "a number");
	for (; isdigit((unsigned char)*parser->at); parser->at++) {
		number = number * 10 + (unsigned)(*parser->at - '0');
		if (number >= TALLY_CPU_MAX) {
			parser->at = start;
			return list_error(parser, "a CPU below 65536");
		}
	}
	*out = number;
	return 0;
}

static int parse_range(struct cpu_parser *parser, unsigned char *bits)
{
	const char *start = parser->at;
	unsigned first, last;
	int code = parse_number(parser, &first);
	last = first;
	if (!code && *parser->at == '-') {
		parser->at++;
		code = parse_number(parser, &last);
	}
	if (code)
		return code;
	if (last < first) {
		parser->at = start;
		return list_error(parser, "a range that goes up");
	}
	for (unsigned cpu = first; cpu <= last; cpu++)
		bits[cpu / 8] |= (unsigned char)(1u << cpu % 8);
	return 0;
}

static int parse_bits(struct cpu_parser *parser, unsigned char *bits)
{
	skip_blanks(parser);
	while (*parser->at) {
		int code = parse_range(parser, bits);
		if (code)
			return code;
		skip_blanks(parser);
		if (!*parser->at)
			break;
		if (*parser->at != ',')
			return list_error(parser, "a comma");
		parser->at++; /* a comma may also follow the last one */
		skip_blanks(parser);
	}
	return 0;
}

int tally_cpu_list_parse(const char *text, struct tally_cpu_list *out, struct tally_error *err)
{
	unsigned char bits[TALLY_CPU_MAX / 8] = { 0 };
	struct cpu_parser parser = { .text = text, .at = text, .err = err };
	size_t count = 0;
	*out = (struct tally_cpu_list){ 0 };
	int code = parse_bits(&parser, bits);
	if (code)
		return code;
	for (size_t i = 0; i < sizeof(bits); i++)
		count += (size_t)__builtin_popcount(bits[i]);
	if (!count)
		return 0;
	out->cpus = calloc(count, sizeof(*out->cpus));
	if (!out->cpus)
		return tally_error_set(err, -ENOMEM, "out of memory");
	for (unsigned cpu = 0; cpu < TALLY_CPU_MAX; cpu++)
		if (bits[cpu / 8] >> cpu % 8 & 1)
			out->cpus[out->count++] = cpu;
	return 0;
}

int tally_cpu_list_asked(const char *text, struct tally_cpu_list *out, struct tally_error *err)
{
	int code = tally_cpu_list_parse(text, out, err);
	if (code || out->count)
		return code;
	return tally_error_set(err, -EINVAL, "the list of CPUs is empty: 0-3,7 is one");
}

int tally_cpu_list_add(struct tally_cpu_list *list, unsigned cpu)
{
	if (tally_cpu_list_contains(list, cpu))
		return 0;
	unsigned *cpus = reallocarray(list->cpus, list->count + 1, sizeof(*cpus));
	if (!cpus)
		return -ENOMEM;
	size_t at = list->count++;
	for (; at && cpus[at - 1] > cpu; at--)
		cpus[at] = cpus[at - 1];
	cpus[at] = cpu;
	list->cpus = cpus;
	return 0;
}

void tally_cpu_list_release(struct tally_cpu_list *list)
{
	free(list->cpus);
	*list = (struct tally_cpu_list){ 0 };
}

char *tally_cpu_list_text(const struct tally_cpu_list *list, struct tally_arena *arena)
{
	struct tally_buffer text = { 0 };
	for (size_t i = 0, next; i < list->count; i = next) {
		for (next = i + 1;
		     next < list->count && list->cpus[next] == list->cpus[next - 1] + 1;)
			next++;
		tally_buffer_printf(&text, "%s%u", i ? "," : "", list->cpus[i]);
		if (next > i + 1)
			tally_buffer_printf(&text, "-%u", list->cpus[next - 1]);
	}
	char *copy = NULL;
	if (!text.failed)
		copy = tally_arena_string(arena, tally_buffer_string(&text));
	tally_buffer_release(&text);
	return copy;
}

int tally_cpu_list_contains(const struct tally_cpu_list *list, unsigned cpu)
{
	for (size_t i = 0; i < list->count && list->cpus[i] <= cpu; i++)
		if (list->cpus[i] == cpu)
			return 1;
	return 0;
}

int tally_cpu_list_read(enum tally_cpu_set set, struct tally_cpu_list *out, struct tally_error *err)
{
	static const char *const paths[] = {
		[TALLY_CPU_ONLINE] = "/sys/devices/system/cpu/online",
		[TALLY_CPU_POSSIBLE] = "/sys/devices/system/cpu/possible",
		[TALLY_CPU_PRESENT] = "/sys/devices/system/cpu/present",
	};
	struct tally_buffer text = { 0 };
	char counted[32];
	const char *list = counted;
	int what = set == TALLY_CPU_ONLINE ? _SC_NPROCESSORS_ONLN : _SC_NPROCESSORS_CONF;
	snprintf(counted, sizeof(counted), "0-%ld", (long)tally_max_i64(sysconf(what), 1) - 1);
	if (!tally_buffer_read_file(&text, AT_FDCWD, paths[set], 1 << 16) && text.length > 1)
		list = tally_buffer_string(&text);
	int code = tally_cpu_list_parse(list, out, err);
	tally_buffer_release(&text);
	return code;
}

/* Finds the value of the first line "key\t: value".  Returns false if there is none. */
static bool cpuinfo_value(const char *cpuinfo, const char *key, char *out, size_t size)
{
	size_t length = strlen(key);
	for (const char *line = cpuinfo; line && *line;) {
		const char *end = strchrnul(line, '\n');
		const char *value = line + length;
		if (!strncmp(line, key, length)) {
			while (*value == ' ' || *value == '\t')
				value++;
			if (*value == ':') {
				value += 1 + (value[1] == ' ');
				snprintf(out, size, "%.*s", (int)tally_max_i64(end - value, 0),
					 value);
				return true;
			}
		}
		line = end + (*end == '\n');
	}
	return false;
}

static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = words; (at = strstr(at, word)); at += length)
		if ((at == words || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return true;
	return false;
}

void tally_cpu_model_parse(const char *cpuinfo, struct tally_cpu_model *out)
{
	/* Keys for the CPU's name on other architectures: s390 and POWER write "cpu"; arm64 has no
	 * such line. */
	static const char *const names[] = { "model name", "cpu model", "Processor", "cpu",
					     "uarch" };
	char vendor[32], family[16], model[16], stepping[16], flags[8192];
	*out = (struct tally_cpu_model){ 0 };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (cpuinfo_value(cpuinfo, names[i], out->name, sizeof(out->name)))
			break;
	if (cpuinfo_value(cpuinfo, "vendor_id", vendor, sizeof(vendor)) &&
	    cpuinfo_value(cpuinfo, "cpu family", family, sizeof(family)) &&
	    cpuinfo_value(cpuinfo, "model", model, sizeof(model))) {
		if (!cpuinfo_value(cpuinfo, "stepping", stepping, sizeof(stepping)) ||
		    !isdigit((unsigned char)*stepping))
			strcpy(stepping, "0");
		snprintf(out->id, sizeof(out->id), "%s,%s,%s,%s", vendor, family, model, stepping);
	}
	if (cpuinfo_value(cpuinfo, "flags", flags, sizeof(flags)))
		out->hypervisor = has_word(flags, "hypervisor");
}

void tally_cpu_model_read(struct tally_cpu_model *out)
{
	struct tally_buffer text = { 0 };
	tally_buffer_read_file(&text, AT_FDCWD, "/proc/cpuinfo", 64 << 20);
	tally_cpu_model_parse(tally_buffer_string(&text), out);
	tally_buffer_clear(&text);
	if (!out->id[0] &&
	    !tally_buffer_read_file(&text, AT_FDCWD,
				    "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1",
				    256)) {
		const char *midr = tally_buffer_string(&text);
		snprintf(out->id, sizeof(out->id), "%.*s", (int)strcspn(midr, "\n"), midr);
	}
	tally_buffer_release(&text);
}

enum { FROM_KERNEL = 1 }; /* the same group as udev's */

int tally_hotplug_open(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = FROM_KERNEL };
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			NETLINK_KOBJECT_UEVENT);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int code = -errno;
		close(fd);
		return code;
	}
	return fd;
}

/* A uevent is "offline@/devices/system/cpu/cpu1", followed by strings of variables. */
bool tally_hotplug_has_news(int fd)
{
	char text[4096];
	bool found = false;
	for (;;) {
		ssize_t got = recv(fd, text, sizeof(text) - 1, 0);
		/* some uevents were lost: they may have been about CPUs */
		if (got < 0 && errno == ENOBUFS) {
			found = true;
			continue;
		}
		if (got <= 0)
			return found;
		text[got] = 0;
		found |= strstr(text, "@/devices/system/cpu/cpu") != NULL;
	}
}
