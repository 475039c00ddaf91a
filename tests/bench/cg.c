/* Lets a program under callgrind say when instructions are counted. */
#include <valgrind/callgrind.h>
void cg_on(void) { CALLGRIND_START_INSTRUMENTATION; }
void cg_off(void) { CALLGRIND_STOP_INSTRUMENTATION; }
void cg_zero(void) { CALLGRIND_ZERO_STATS; }
void cg_dump(char *name) { CALLGRIND_DUMP_STATS_AT(name); }
