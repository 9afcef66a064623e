/* Parses the options whose arguments have a syntax of their own. */
#include "command/record_request.h"

#include "abi/arch.h"
#include "unwind/unwind.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int record_parse_call_graph(const char *value, struct tally_recorder_options *record,
			    struct tally_error *err)
{
	unsigned long long bytes;
	if (!strcmp(value, "fp")) {
		record->call_graph = TALLY_CALL_GRAPH_FP;
	} else if (!strcmp(value, "lbr")) {
		record->call_graph = TALLY_CALL_GRAPH_LBR;
	} else if (!strcmp(value, "none") || !strcmp(value, "no")) {
		record->call_graph = TALLY_CALL_GRAPH_NONE;
	} else if (!strncmp(value, "dwarf", 5) && (!value[5] || value[5] == ',')) {
		record->call_graph = TALLY_CALL_GRAPH_STACK;
		if (value[5]) {
			int result = tally_option_size("--call-graph dwarf", value + 6, &bytes,
						       err);
			if (result < 0)
				return result;
			if (bytes < 256 || bytes > 64512)
				return tally_error_set(
					err, -EINVAL,
					"--call-graph dwarf: a stack copy has 256 to 64512 bytes, not %llu",
					bytes);
			record->stack_bytes = (uint32_t)bytes;
		}
	} else {
		return tally_error_set(
			err, -EINVAL,
			"--call-graph: '%s' is none of fp, dwarf, dwarf,SIZE, lbr, none", value);
	}
	return 0;
}

int record_parse_branches(const char *value, struct tally_recorder_options *record,
			  struct tally_error *err)
{
	static const struct { const char *name; uint64_t bit;
	} names[] = {
		{ "u", TALLY_BRANCH_USER },
		{ "k", TALLY_BRANCH_KERNEL },
		{ "hv", TALLY_BRANCH_HV },
		{ "any", TALLY_BRANCH_ANY },
		{ "any_call", TALLY_BRANCH_ANY_CALL },
		{ "any_ret", TALLY_BRANCH_ANY_RETURN },
		{ "ind_call", TALLY_BRANCH_IND_CALL },
		{ "abort_tx", TALLY_BRANCH_ABORT_TX },
		{ "in_tx", TALLY_BRANCH_IN_TX },
		{ "no_tx", TALLY_BRANCH_NO_TX },
		{ "cond", TALLY_BRANCH_COND },
		{ "ind_jmp", TALLY_BRANCH_IND_JUMP },
		{ "call", TALLY_BRANCH_CALL },
		{ "stack", TALLY_BRANCH_CALL_STACK },
		{ "save_type", TALLY_BRANCH_TYPE_SAVE },
		{ "hw_index", TALLY_BRANCH_HW_INDEX },
		{ "priv", TALLY_BRANCH_PRIV_SAVE },
	};
	const uint64_t whose = TALLY_BRANCH_USER | TALLY_BRANCH_KERNEL | TALLY_BRANCH_HV;
	uint64_t bits = 0;
	for (const char *word = value; *word;
	     word += strcspn(word, ",") + (word[strcspn(word, ",")] == ',')) {
		size_t length = strcspn(word, ","), i = 0, count = sizeof(names) / sizeof(names[0]);
		while (i < count && (strlen(names[i].name) != length ||
				     memcmp(names[i].name, word, length) != 0))
			i++;
		if (i == count)
			return tally_error_set(
				err, -EINVAL,
				"-j: unknown kind of branch '%.*s'; use any, any_call, any_ret, "
				"ind_call, ind_jmp, cond, call, abort_tx, in_tx, no_tx, stack, "
				"save_type, hw_index, priv, and u, k, hv",
				(int)length, word);
		bits |= names[i].bit;
	}
	record->branches |= bits & ~whose ? bits : bits | TALLY_BRANCH_ANY;
	return 0;
}

/* Parses a number of bytes with B, K, M or G, or a time with s, m, h, d or ms. As in perf, M means
 * bytes and m minutes. */
int record_parse_switch(const char *value, struct tally_recorder_rotation *when,
			struct tally_error *err)
{
	char *end;
	when->is_wanted = true;
	if (!value || !strcmp(value, "signal"))
		return 0;
	double number = strtod(value, &end);
	static const struct { const char *unit; double bytes, seconds;
	} units[] = {
		{ "B", 1, 0 },       { "K", 1 << 10, 0 }, { "M", 1 << 20, 0 },
		{ "G", 1 << 30, 0 }, { "ms", 0, 1e-3 },   { "s", 0, 1 },
		{ "m", 0, 60 },      { "h", 0, 3600 },    { "d", 0, 86400 },
	};
	for (size_t i = 0; end > value && i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) != 0 || !(number > 0) || number > 1e9)
			continue;
		when->bytes = (uint64_t)(number * units[i].bytes);
		when->seconds = number * units[i].seconds;
		if (!when->bytes && when->seconds < 0.01)
			return tally_error_set(err, -EINVAL, "--switch-output: '%s' is too small",
					       value);
		return 0;
	}
	return tally_error_set(
		err, -EINVAL,
		"--switch-output: '%s' is none of signal, SIZE (500K, 10M, 2G), TIME (30s, 5m, 1h)",
		value);
}

static bool parse_ms(const char **text, double *seconds)
{
	char *end;
	unsigned long number = strtoul(*text, &end, 10);
	bool is_number = end != *text && isdigit((unsigned char)**text) && number <= 1000000000;
	*seconds = (double)number / 1000;
	*text = end;
	return is_number;
}

static int parse_ranges(const char *value, struct record_request *request, struct tally_error *err)
{
	struct tally_recorder_options *record = &request->record;
	size_t count = 1;
	for (const char *at = value; *at; at++)
		count += *at == ',';
	struct tally_recorder_range *ranges = tally_arena_array(&request->arena, count,
								sizeof(*ranges));
	const char *at = value;
	double last = -1;
	if (!ranges)
		return tally_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++) {
		bool is_range = parse_ms(&at, &ranges[i].start_s) && *at++ == '-' &&
				parse_ms(&at, &ranges[i].end_s) && *at == (i + 1 < count ? ',' : 0);
		if (!is_range || ranges[i].start_s <= last || ranges[i].end_s <= ranges[i].start_s)
			return tally_error_set(
				err, -EINVAL,
				"-D: '%s' is neither milliseconds nor ascending ranges "
				"(10-20,30-40)",
				value);
		last = ranges[i].end_s;
		at++;
	}
	record->ranges = ranges;
	record->range_count = count;
	record->delay_s = ranges[0].start_s;
	return 0;
}

int record_parse_delay(const char *value, struct record_request *request, struct tally_error *err)
{
	struct tally_recorder_options *record = &request->record;
	unsigned long long number = 0;
	record->starts_off = !strcmp(value, "-1");
	record->delay_s = 0;
	record->range_count = 0;
	if (record->starts_off)
		return 0;
	if (strchr(value, '-') || strchr(value, ','))
		return parse_ranges(value, request, err);
	int result = tally_option_u64("-D", value, 0, 1000000000, &number, err);
	record->delay_s = (double)number / 1000;
	return result;
}

int record_parse_registers(const char *option, const char *value, uint64_t *mask,
			   struct tally_error *err)
{
	enum tally_arch host = tally_arch_host();
	uint64_t all = tally_unwind_regs_mask(TALLY_UNWIND_HOST);
	char names[512] = "";
	for (unsigned bit = 0; bit < 64; bit++)
		if (all >> bit & 1)
			snprintf(names + strlen(names), sizeof(names) - strlen(names), " %s",
				 tally_arch_register(host, bit));
	if (!all)
		return tally_error_set(err, -ENOTSUP, "%s: registers of this machine are not known",
				       option);
	for (const char *word = value; word && *word;
	     word += strcspn(word, ","), word += *word == ',') {
		size_t length = strcspn(word, ",");
		unsigned bit = 0;
		while (bit < 64 &&
		       (!(all >> bit & 1) || strlen(tally_arch_register(host, bit)) != length ||
			strncasecmp(tally_arch_register(host, bit), word, length) != 0))
			bit++;
		if (bit == 64)
			return tally_error_set(err, -EINVAL, "%s: '%.*s' is none of%s", option,
					       (int)length, word, names);
		*mask |= (uint64_t)1 << bit;
	}
	if (!value || !*value)
		*mask = all;
	return 0;
}
