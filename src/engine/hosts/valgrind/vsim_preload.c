/* Valgrind's core preloads an object of this name into the programs that it runs, to replace
 * functions.  This tool replaces none.  But without the file, the dynamic linker of each program
 * would print a complaint. */
extern const char tally_simulated_nothing;
const char tally_simulated_nothing = 0;
