/* Shared by the files of the scenario parser. */
#ifndef TALLY_SIM_SCENARIO_PARSER_H
#define TALLY_SIM_SCENARIO_PARSER_H

#include "sim/scenario.h"

struct scenario_word {
	const char *start;
	unsigned length;   /* 0: end of the line */
	unsigned column;
	bool is_quoted;    /* `start` and `length` exclude the quotes */
	bool is_unclosed;
};

/* A use of a name.  The parser resolves it at the end, when all names are known. */
struct scenario_reference {
	struct scenario_word word;
	unsigned line;
	/* the step that uses the name; if program is SCENARIO_ITEMS_MAX, `step` is a part */
	unsigned program, step;
};

struct scenario_parser {
	struct scenario *scenario;
	struct scenario_error *error;
	const char *at, *line_end, *end;
	const char *line_start;
	unsigned line;
	struct scenario_word word; /* the next word */
	struct scenario_program *program; /* the program whose steps are being read, or NULL */
	unsigned open[SCENARIO_DEPTH_MAX], depth; /* repeats that are still open */
	struct scenario_reference *references;
	unsigned reference_count, reference_capacity;
	uint64_t next_code, next_kernel;
	bool has_machine;
};

/* Errors.  All functions return -22 or -12, which callers pass on. */
int scenario_fail(struct scenario_parser *parser, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int scenario_expected(struct scenario_parser *parser, const char *what);

/* Words. */
void scenario_next(struct scenario_parser *parser);
bool scenario_is(const struct scenario_parser *parser, const char *text);
/* takes it if it is the next word; returns true if it was */
bool scenario_skip(struct scenario_parser *parser, const char *text);
int scenario_need(struct scenario_parser *parser, const char *text);
/* fails unless the line ends here */
int scenario_done(struct scenario_parser *parser);
int scenario_name(struct scenario_parser *parser, const char *what, const char **name);
int scenario_text(struct scenario_parser *parser, const char *what, const char **text); /* "…" */
int scenario_number(struct scenario_parser *parser, const char *what, uint64_t minimum,
		    uint64_t maximum, uint64_t *out);
bool scenario_is_time(
	const struct scenario_parser *parser); /* "5ms", or a number followed by a unit */
int scenario_time(struct scenario_parser *parser, uint64_t *ns);
int scenario_refer(struct scenario_parser *parser, unsigned program, unsigned step);
int scenario_grow(struct scenario_parser *parser, void **items, unsigned count, unsigned *capacity,
		  size_t size);

/* Look up a name among those defined above. */
int scenario_find_mix(struct scenario_parser *parser, int *out);
int scenario_find_function(struct scenario_parser *parser, int *out);

/* scenario_steps.c: parses a line within a task. */
int scenario_step(struct scenario_parser *parser);

#endif
