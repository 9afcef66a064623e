/* The fields of samples that a report is sorted by: one row each.
 *
 * Constants, names, titles, JSON, completion, suggestions, errors and the browser's menu come from
 * these rows.  docs/architecture.md (Recipes) tells how to add one.
 *
 * A row is KEY(CONSTANT, "name in --sort", initialisers of struct tally_sort_row …).  Columns have
 * the order of the rows.  Only sort_keys.c, which has the functions and the needs, expands the
 * initialisers. */
#ifndef TALLY_PROFILE_SAMPLE_FIELDS_H
#define TALLY_PROFILE_SAMPLE_FIELDS_H

#define TALLY_SORT_KEYS_OF_TASKS(KEY) \
	KEY(COMM, "comm", NULL, "COMMAND", "command", TALLY_KIND_TASK_TEXT, \
	    .menu = "command", .letter = 'c') \
	KEY(PID, "pid", NULL, "PID", "pid", TALLY_KIND_NUMBER, .menu = "process", \
	    .letter = 'p') \
	KEY(TID, "tid", NULL, "TID", "tid", TALLY_KIND_NUMBER, .menu = "thread", \
	    .letter = 't') \
	KEY(CPU, "cpu", NULL, "CPU", "cpu", TALLY_KIND_NUMBER) \
	KEY(CGROUP, "cgroup", NULL, "CGROUP", "cgroup", TALLY_KIND_TASK_TEXT) \
	KEY(CGROUP_ID, "cgroup_id", NULL, "CGROUP ID", "cgroup_id", \
	    TALLY_KIND_TASK_TEXT /* the cgroup namespace */)

#define TALLY_SORT_KEYS_OF_BRANCHES(KEY) \
	KEY(OBJECT_FROM, "dso_from", NULL, "FROM OBJECT", "from_object", TALLY_KIND_OBJECT, \
	    &needs[BRANCHES]) \
	KEY(SYMBOL_FROM, "sym_from", "symbol_from", "FROM FUNCTION", "from_function", \
	    TALLY_KIND_FUNCTION, &needs[BRANCHES]) \
	KEY(LINE_FROM, "srcline_from", NULL, "FROM LINE", "from_line", TALLY_KIND_LINE, \
	    &needs[BRANCHES]) \
	KEY(OBJECT_TO, "dso_to", NULL, "TO OBJECT", "to_object", TALLY_KIND_OBJECT, \
	    &needs[BRANCHES]) \
	KEY(SYMBOL_TO, "sym_to", "symbol_to", "TO FUNCTION", "to_function", \
	    TALLY_KIND_FUNCTION, &needs[BRANCHES]) \
	KEY(LINE_TO, "srcline_to", NULL, "TO LINE", "to_line", TALLY_KIND_LINE, \
	    &needs[BRANCHES]) \
	KEY(MISPREDICT, "mispredict", NULL, "MISPREDICTED", "mispredicted", TALLY_KIND_TEXT, \
	    &needs[BRANCH_FLAGS], .number = prediction, .text = prediction_text) \
	KEY(IN_TRANSACTION, "in_tx", NULL, "IN TX", "in_transaction", TALLY_KIND_TEXT, \
	    &needs[BRANCH_FLAGS], .number = in_transaction, .text = in_transaction_text) \
	KEY(ABORT, "abort", NULL, "ABORT", "abort", TALLY_KIND_TEXT, &needs[BRANCH_FLAGS], \
	    .number = is_aborted, .text = abort_text) \
	KEY(CYCLES, "cycles", NULL, "CYCLES", "cycles", TALLY_KIND_NUMBER, \
	    &needs[BRANCH_CYCLES], .number = cycles) \
	KEY(ADDRESS_FROM, "addr_from", NULL, "FROM ADDRESS", "from_address", TALLY_KIND_TEXT, \
	    &needs[BRANCHES], .word = BRANCH_WORD(from), .text = address_text) \
	KEY(ADDRESS_TO, "addr_to", NULL, "TO ADDRESS", "to_address", TALLY_KIND_TEXT, \
	    &needs[BRANCHES], .word = BRANCH_WORD(to), .text = address_text)

/* One value for all frames of a sample's stack. */
#define TALLY_SORT_KEYS_OF_SAMPLES(KEY) \
	KEY(TIME, "time", NULL, "TIME", "time", TALLY_KIND_TEXT, &needs[TIMES], \
	    .number = time_ns, .text = time_text) \
	KEY(SOCKET, "socket", NULL, "SOCKET", "socket", TALLY_KIND_DIGITS, &needs[CPUS], \
	    .string = socket_string) \
	KEY(WEIGHT, "weight", NULL, "WEIGHT", "weight", TALLY_KIND_EACH, &needs[WEIGHTS], \
	    .number = weight) \
	KEY(LOCAL_WEIGHT, "local_weight", NULL, "LOCAL WEIGHT", "local_weight", \
	    TALLY_KIND_DIGITS, &needs[WEIGHTS], .number = weight) \
	KEY(LATENCY, "ins_lat", NULL, "LATENCY", "ins_lat", TALLY_KIND_EACH, \
	    &needs[WEIGHT_PARTS], .number = latency) \
	KEY(LOCAL_LATENCY, "local_ins_lat", NULL, "LOCAL LATENCY", "local_ins_lat", \
	    TALLY_KIND_DIGITS, &needs[WEIGHT_PARTS], .number = latency) \
	KEY(STAGE, "p_stage_cyc", NULL, "STAGE CYCLES", "p_stage_cyc", TALLY_KIND_EACH, \
	    &needs[WEIGHT_PARTS], .number = stage_cycles) \
	KEY(LOCAL_STAGE, "local_p_stage_cyc", NULL, "LOCAL STAGE CYCLES", \
	    "local_p_stage_cyc", TALLY_KIND_DIGITS, &needs[WEIGHT_PARTS], \
	    .number = stage_cycles) \
	KEY(TRANSACTION, "transaction", NULL, "TRANSACTION", "transaction", TALLY_KIND_TEXT, \
	    &needs[TRANSACTIONS], .word = SAMPLE_WORD(transaction), \
	    .text = tally_transaction_text) \
	KEY(TRACE, "trace", NULL, "TRACE", "trace", TALLY_KIND_TEXT, &needs[TRACES], \
	    .string = trace_string, .uses_names = true) /* a tracepoint's text */ \
	KEY(ADDRESS, "addr", NULL, "ADDRESS", "address", TALLY_KIND_TEXT, &needs[ADDRESSES], \
	    .word = SAMPLE_WORD(ip), .text = address_text) /* of the code */ \
	KEY(CODE_PAGE, "code_page_size", NULL, "CODE PAGE", "code_page_size", \
	    TALLY_KIND_TEXT, &needs[CODE_PAGES], .word = SAMPLE_WORD(code_page_size), \
	    .text = tally_page_size_text) \
	KEY(LEVEL, "mem", NULL, "MEMORY ACCESS", "mem", TALLY_KIND_TEXT, \
	    &needs[DATA_SOURCES], .word = SAMPLE_WORD(data_src), \
	    .text = tally_data_level_text) /* the level at which the data was found */ \
	KEY(DATA_SYMBOL, "symbol_daddr", "sym_daddr", "DATA SYMBOL", "data_symbol", \
	    TALLY_KIND_TEXT, &needs[DATA_ADDRESSES], .string = data_symbol_string, \
	    .uses_names = true) \
	KEY(DATA_OBJECT, "dso_daddr", NULL, "DATA OBJECT", "data_object", TALLY_KIND_TEXT, \
	    &needs[DATA_ADDRESSES], .string = data_object_string, .uses_names = true) \
	KEY(CACHELINE, "dcacheline", NULL, "DATA CACHELINE", "data_cacheline", \
	    TALLY_KIND_TEXT, &needs[DATA_ADDRESSES], .string = cacheline_string, \
	    .uses_names = true) \
	KEY(PHYSICAL, "phys_daddr", NULL, "PHYSICAL ADDRESS", "phys_addr", TALLY_KIND_TEXT, \
	    &needs[PHYSICAL_ADDRESSES], .word = SAMPLE_WORD(phys_addr), \
	    .text = physical_text) \
	KEY(DATA_PAGE, "data_page_size", NULL, "DATA PAGE", "data_page_size", \
	    TALLY_KIND_TEXT, &needs[DATA_PAGES], .word = SAMPLE_WORD(data_page_size), \
	    .text = tally_page_size_text) \
	KEY(SNOOP, "snoop", NULL, "SNOOP", "snoop", TALLY_KIND_TEXT, &needs[DATA_SOURCES], \
	    .word = SAMPLE_WORD(data_src), .text = tally_data_snoop_text) \
	KEY(TLB, "tlb", NULL, "TLB ACCESS", "tlb", TALLY_KIND_TEXT, &needs[DATA_SOURCES], \
	    .word = SAMPLE_WORD(data_src), .text = tally_data_tlb_text) \
	KEY(LOCK, "locked", NULL, "LOCKED", "locked", TALLY_KIND_TEXT, &needs[DATA_SOURCES], \
	    .word = SAMPLE_WORD(data_src), .text = tally_data_lock_text) \
	KEY(BLOCK, "blocked", NULL, "BLOCKED", "blocked", TALLY_KIND_TEXT, \
	    &needs[DATA_SOURCES], .word = SAMPLE_WORD(data_src), \
	    .text = tally_data_block_text)

#define TALLY_SORT_KEYS_OF_FRAMES(KEY) \
	KEY(OBJECT, "dso", "object", "OBJECT", NULL, TALLY_KIND_OWN_OBJECT, .menu = "object", \
	    .letter = 'o') \
	KEY(SYMBOL, "sym", "symbol", "FUNCTION", NULL, TALLY_KIND_OWN_FUNCTION, \
	    .menu = "function", .letter = 'f') \
	KEY(SOURCE_FILE, "srcfile", NULL, "SOURCE FILE", "source_file", TALLY_KIND_TEXT) \
	KEY(SOURCE_LINE, "srcline", NULL, "SOURCE LINE", "source_line", TALLY_KIND_TEXT)

/* The keys in `tally report --help`. */
#define TALLY_SORT_HELP \
	"  of any sample  comm,pid,tid,cpu,socket,cgroup,cgroup_id,time,dso,sym,\n" \
	"                 srcfile,srcline,addr; trace of tracepoints\n" \
	"  of branches    dso_from,sym_from,srcline_from,addr_from, the same with\n" \
	"                 _to, mispredict,in_tx,abort,cycles\n" \
	"  of costs       weight,ins_lat,p_stage_cyc, local_weight,local_ins_lat,\n" \
	"                 local_p_stage_cyc, transaction\n" \
	"  of memory      mem,symbol_daddr,dso_daddr,dcacheline,phys_daddr,\n" \
	"                 data_page_size,snoop,tlb,locked,blocked, code_page_size\n"

#endif
