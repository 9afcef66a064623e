#include "report/sort_keys.h"

#include "profile/sample_facts.h"

#include "tally/perf_event.h"

#include <string.h>

enum { BRANCH = TALLY_FACT_BRANCH };

#define VALUE(name) TALLY_FACT_VALUE(TALLY_VALUE_##name)

static const struct tally_sort_key_words words[TALLY_SORT_KEYS] = {
	[TALLY_SORT_COMM] = { "comm", NULL, "COMMAND", "command", TALLY_KEY_TASK_TEXT },
	[TALLY_SORT_PID] = { "pid", NULL, "PID", "pid", TALLY_KEY_NUMBER },
	[TALLY_SORT_TID] = { "tid", NULL, "TID", "tid", TALLY_KEY_NUMBER },
	[TALLY_SORT_CPU] = { "cpu", NULL, "CPU", "cpu", TALLY_KEY_NUMBER },
	[TALLY_SORT_CGROUP] = { "cgroup", NULL, "CGROUP", "cgroup", TALLY_KEY_TASK_TEXT },
	[TALLY_SORT_CGROUP_ID] = { "cgroup_id", NULL, "CGROUP ID", "cgroup_id",
				   TALLY_KEY_TASK_TEXT },
	[TALLY_SORT_OBJECT_FROM] = { "dso_from", NULL, "FROM OBJECT", "from_object",
				     TALLY_KEY_OBJECT, BRANCH | TALLY_FACT_FROM },
	[TALLY_SORT_SYMBOL_FROM] = { "sym_from", "symbol_from", "FROM FUNCTION", "from_function",
				     TALLY_KEY_FUNCTION, BRANCH | TALLY_FACT_FROM },
	[TALLY_SORT_LINE_FROM] = { "srcline_from", NULL, "FROM LINE", "from_line", TALLY_KEY_TEXT,
				   BRANCH | TALLY_FACT_FROM },
	[TALLY_SORT_OBJECT_TO] = { "dso_to", NULL, "TO OBJECT", "to_object", TALLY_KEY_OBJECT,
				   BRANCH },
	[TALLY_SORT_SYMBOL_TO] = { "sym_to", "symbol_to", "TO FUNCTION", "to_function",
				   TALLY_KEY_FUNCTION, BRANCH },
	[TALLY_SORT_LINE_TO] = { "srcline_to", NULL, "TO LINE", "to_line", TALLY_KEY_TEXT, BRANCH },
	[TALLY_SORT_MISPREDICT] = { "mispredict", NULL, "MISPREDICTED", "mispredicted",
				    TALLY_KEY_TEXT, BRANCH | TALLY_FACT_PREDICTION },
	[TALLY_SORT_IN_TRANSACTION] = { "in_tx", NULL, "IN TX", "in_transaction", TALLY_KEY_TEXT,
					BRANCH | TALLY_FACT_TRANSACTION },
	[TALLY_SORT_ABORT] = { "abort", NULL, "ABORT", "abort", TALLY_KEY_TEXT,
			       BRANCH | TALLY_FACT_ABORT },
	[TALLY_SORT_CYCLES] = { "cycles", NULL, "CYCLES", "cycles", TALLY_KEY_NUMBER,
				BRANCH | TALLY_FACT_CYCLES },
	[TALLY_SORT_ADDRESS_FROM] = { "addr_from", NULL, "FROM ADDRESS", "from_address",
				      TALLY_KEY_TEXT, BRANCH | VALUE(ADDRESS_FROM) },
	[TALLY_SORT_ADDRESS_TO] = { "addr_to", NULL, "TO ADDRESS", "to_address", TALLY_KEY_TEXT,
				    BRANCH | VALUE(ADDRESS_TO) },
	[TALLY_SORT_TIME] = { "time", NULL, "TIME", "time", TALLY_KEY_TEXT, VALUE(TIME) },
	[TALLY_SORT_SOCKET] = { "socket", NULL, "SOCKET", "socket", TALLY_KEY_DIGITS,
				VALUE(SOCKET) },
	[TALLY_SORT_WEIGHT] = { "weight", NULL, "WEIGHT", "weight", TALLY_KEY_EACH, VALUE(WEIGHT) },
	[TALLY_SORT_LOCAL_WEIGHT] = { "local_weight", NULL, "LOCAL WEIGHT", "local_weight",
				      TALLY_KEY_DIGITS, VALUE(WEIGHT) },
	[TALLY_SORT_LATENCY] = { "ins_lat", NULL, "LATENCY", "ins_lat", TALLY_KEY_EACH,
				 VALUE(LATENCY) },
	[TALLY_SORT_LOCAL_LATENCY] = { "local_ins_lat", NULL, "LOCAL LATENCY", "local_ins_lat",
				       TALLY_KEY_DIGITS, VALUE(LATENCY) },
	[TALLY_SORT_STAGE] = { "p_stage_cyc", NULL, "STAGE CYCLES", "p_stage_cyc", TALLY_KEY_EACH,
			       VALUE(STAGE) },
	[TALLY_SORT_LOCAL_STAGE] = { "local_p_stage_cyc", NULL, "LOCAL STAGE CYCLES",
				     "local_p_stage_cyc", TALLY_KEY_DIGITS, VALUE(STAGE) },
	[TALLY_SORT_TRANSACTION] = { "transaction", NULL, "TRANSACTION", "transaction",
				     TALLY_KEY_TEXT, VALUE(TRANSACTION) },
	[TALLY_SORT_TRACE] = { "trace", NULL, "TRACE", "trace", TALLY_KEY_TEXT, VALUE(TRACE) },
	[TALLY_SORT_ADDRESS] = { "addr", NULL, "ADDRESS", "address", TALLY_KEY_TEXT,
				 VALUE(ADDRESS) },
	[TALLY_SORT_CODE_PAGE] = { "code_page_size", NULL, "CODE PAGE", "code_page_size",
				   TALLY_KEY_TEXT, VALUE(CODE_PAGE) },
	[TALLY_SORT_LEVEL] = { "mem", NULL, "MEMORY ACCESS", "mem", TALLY_KEY_TEXT, VALUE(LEVEL) },
	[TALLY_SORT_DATA_SYMBOL] = { "symbol_daddr", "sym_daddr", "DATA SYMBOL", "data_symbol",
				     TALLY_KEY_TEXT, VALUE(DATA_SYMBOL) },
	[TALLY_SORT_DATA_OBJECT] = { "dso_daddr", NULL, "DATA OBJECT", "data_object",
				     TALLY_KEY_TEXT, VALUE(DATA_OBJECT) },
	[TALLY_SORT_CACHELINE] = { "dcacheline", NULL, "DATA CACHELINE", "data_cacheline",
				   TALLY_KEY_TEXT, VALUE(CACHELINE) },
	[TALLY_SORT_PHYSICAL] = { "phys_daddr", NULL, "PHYSICAL ADDRESS", "phys_addr",
				  TALLY_KEY_TEXT, VALUE(PHYSICAL) },
	[TALLY_SORT_DATA_PAGE] = { "data_page_size", NULL, "DATA PAGE", "data_page_size",
				   TALLY_KEY_TEXT, VALUE(DATA_PAGE) },
	[TALLY_SORT_SNOOP] = { "snoop", NULL, "SNOOP", "snoop", TALLY_KEY_TEXT, VALUE(SNOOP) },
	[TALLY_SORT_TLB] = { "tlb", NULL, "TLB ACCESS", "tlb", TALLY_KEY_TEXT, VALUE(TLB) },
	[TALLY_SORT_LOCK] = { "locked", NULL, "LOCKED", "locked", TALLY_KEY_TEXT, VALUE(LOCK) },
	[TALLY_SORT_BLOCK] = { "blocked", NULL, "BLOCKED", "blocked", TALLY_KEY_TEXT,
			       VALUE(BLOCK) },
	[TALLY_SORT_OBJECT] = { "dso", "object", "OBJECT", NULL, TALLY_KEY_OWN_OBJECT },
	[TALLY_SORT_SYMBOL] = { "sym", "symbol", "FUNCTION", NULL, TALLY_KEY_OWN_FUNCTION },
	[TALLY_SORT_SOURCE_FILE] = { "srcfile", NULL, "SOURCE FILE", "source_file",
				     TALLY_KEY_TEXT },
	[TALLY_SORT_SOURCE_LINE] = { "srcline", NULL, "SOURCE LINE", "source_line",
				     TALLY_KEY_TEXT },
};

const struct tally_sort_key_words *tally_sort_key_words(enum tally_sort_key key)
{
	return &words[key];
}

static bool is_named(const char *name, const char *text, unsigned length)
{
	return name && strlen(name) == length && !memcmp(name, text, length);
}

enum tally_sort_key tally_sort_key_find(const char *name, unsigned length)
{
	unsigned key = 0;
	while (key < TALLY_SORT_KEYS && !is_named(words[key].name, name, length) &&
	       !is_named(words[key].alias, name, length))
		key++;
	return (enum tally_sort_key)key;
}

bool tally_sort_key_lacks(unsigned facts, uint64_t sample_types, unsigned *fact, const char **lacks,
			  const char **hint)
{
	static const char memory[] =
		"record them with perf mem record, or with tally record -d -W and a CPU event of loads or stores";
	static const struct {
		unsigned facts;
		uint64_t sample_types;
		const char *lacks, *hint;
	} needs[] = {
		{ VALUE(WEIGHT), TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT, "weights",
		  "record them with tally record -W" },
		{ VALUE(LATENCY) | VALUE(STAGE), TALLY_SAMPLE_WEIGHT_STRUCT,
		  "weights of several parts",
		  "record them with tally record -W, on CPUs that measure latencies" },
		{ VALUE(TRANSACTION), TALLY_SAMPLE_TRANSACTION, "flags of transactions",
		  "record them with tally record --transaction" },
		{ VALUE(TRACE), TALLY_SAMPLE_RAW, "samples of tracepoints",
		  "record some with tally record -e sched:sched_switch" },
		{ VALUE(SOCKET), TALLY_SAMPLE_CPU, "CPUs of samples",
		  "record them with tally record --sample-cpu, -a or -C" },
		{ VALUE(TIME), TALLY_SAMPLE_TIME, "times",
		  "record them with tally record, or perf record -T" },
		{ VALUE(ADDRESS), TALLY_SAMPLE_IP, "addresses of code", "record them with tally record" },
		{ VALUE(CODE_PAGE), TALLY_SAMPLE_CODE_PAGE_SIZE, "sizes of code's pages",
		  "record them with tally record --code-page-size" },
		{ VALUE(DATA_SYMBOL) | VALUE(DATA_OBJECT) | VALUE(CACHELINE), TALLY_SAMPLE_ADDR,
		  "addresses of data", "record them with tally record -d" },
		{ VALUE(PHYSICAL), TALLY_SAMPLE_PHYS_ADDR, "physical addresses",
		  "record them with tally record --phys-data" },
		{ VALUE(DATA_PAGE), TALLY_SAMPLE_DATA_PAGE_SIZE, "sizes of data's pages",
		  "record them with tally record --data-page-size" },
		{ VALUE(LEVEL) | VALUE(SNOOP) | VALUE(TLB) | VALUE(LOCK) | VALUE(BLOCK),
		  TALLY_SAMPLE_DATA_SRC, "sources of data", memory },
	};
	for (unsigned i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		if (facts & needs[i].facts && !(sample_types & needs[i].sample_types)) {
			*fact = needs[i].facts;
			*lacks = needs[i].lacks;
			*hint = needs[i].hint;
			return true;
		}
	return false;
}
