/* Valgrind's core preloads an object of this name into what it runs, for the replacement of
 * functions.  None is replaced here, and without the file each program would begin with a complaint
 * of the dynamic linker's. */
extern const char tally_simulated_nothing;
const char tally_simulated_nothing = 0;
