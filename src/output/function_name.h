/* Where a function's name ends and its parameters begin. */
#ifndef TALLY_OUTPUT_FUNCTION_NAME_H
#define TALLY_OUTPUT_FUNCTION_NAME_H

#include <stddef.h>

/* The length up to the parameter list: the first '(' that stands in no template's arguments
 * ("<lambda(int)>"), nor in a lambda's name ("{lambda(int)#1}"), isn't followed by what it belongs
 * to ("f(int)::g", "(anonymous namespace)::f"), is no operator's name, nor a Go receiver's
 * "(*T)." */
size_t tally_function_name_length(const char *name);

#endif
