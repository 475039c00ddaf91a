/* Events: "0 xid 79 !10" for one XID of GPU 0, told at the next wait; "0 xid !10 31 79 !10" is none, then two, then none any more.
 * "0 events 0" for a GPU that knows no XID events, "0 events.register !4" for one that does not let them be asked for, "* wait !15"
 * for a wait that fails at once, "0 wait.of !15" for one that fails as long as GPU 0 is in the set, "* xid.gi 3" for the GPU
 * instance. */
#include "fake.h"

#include <stdlib.h>

#define XID 8ull
#define MOST 16

struct set {
    struct gpu *of[MOST];
    int count;
};
struct event {
    struct gpu *gpu;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct event) == 32, "nvmlEventData_t");

static int sets; /* that are created and not freed */

API int nvmlEventSetCreate(struct set **out)
{
    int code = refused(NULL, "events.create");
    if (code != OK)
        return code;
    *out = calloc(1, sizeof **out);
    sets++;
    return OK;
}

API int nvmlEventSetFree(struct set *set)
{
    free(set);
    sets--;
    return OK;
}

/* Not of the real library: how many sets a test has left behind. */
API int fakeSets(void) { return sets; }
API void fakeForgetSets(int count) { sets -= count; }

API int nvmlDeviceGetSupportedEventTypes(struct gpu *gpu, unsigned long long *out)
{
    *out = XID | 1;
    int code = number(gpu, "events", out);
    return code == NOT_SUPPORTED ? OK : code;
}

API int nvmlDeviceRegisterEvents(struct gpu *gpu, unsigned long long types, struct set *set)
{
    if (types != XID || set->count >= MOST)
        return INVALID;
    int code = refused(gpu, "events.register");
    if (code != OK)
        return code;
    set->of[set->count++] = gpu;
    return OK;
}

API int nvmlEventSetWait_v2(struct set *set, struct event *out, unsigned timeout_ms)
{
    char text[WIDTH];
    int code = refused(NULL, "wait");
    if (code != OK)
        return code;
    for (int i = 0; i < set->count; i++)
        if ((code = ask(set->of[i]->who, "wait.of", text)) > 0)
            return code;
    for (int i = 0; i < set->count; i++) {
        /* the script's last answer stays, so the end of a list is written as "!10"; a GPU that is lost still has events */
        code = ask(set->of[i]->who, "xid", text);
        if (code == OK) {
            *out = (struct event){set->of[i], XID, strtoull(text, NULL, 0), ~0u, ~0u};
            unsigned32(NULL, "xid.gi", &out->gpu_instance);
            return OK;
        }
        if (code > 0 && code != TIMEOUT)
            return code;
    }
    rest_ms(timeout_ms);
    return TIMEOUT;
}
