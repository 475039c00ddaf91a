/* The processes on a GPU, and their use of it: "processes 2", "process.0.pid 4242", "process.0.memory 123", and for one that
 * belongs to a MIG device "process.0.gi 3" and "process.0.ci 0". */
#include "fake.h"

#include <stdio.h>

struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct process) == 24, "nvmlProcessInfo_v2_t");

static int processes(struct gpu *gpu, const char *list, unsigned *count, struct process *out)
{
    unsigned there, room = *count;
    int code = unsigned32(gpu, list, &there);
    if (code != OK)
        return code;
    *count = there;
    if (there == 0)
        return OK;
    if (!out || room < there)
        return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < there; i++) {
        char key[32];
        out[i] = (struct process){0, ~0ull, ~0u, ~0u};
        snprintf(key, sizeof key, "process.%u.pid", i);
        unsigned32(gpu, key, &out[i].pid);
        snprintf(key, sizeof key, "process.%u.memory", i);
        number(gpu, key, &out[i].memory);
        snprintf(key, sizeof key, "process.%u.gi", i);
        unsigned32(gpu, key, &out[i].gpu_instance);
        snprintf(key, sizeof key, "process.%u.ci", i);
        unsigned32(gpu, key, &out[i].compute_instance);
    }
    return OK;
}

API int nvmlDeviceGetComputeRunningProcesses_v3(struct gpu *gpu, unsigned *count, struct process *out)
{
    return processes(gpu, "processes", count, out);
}

API int nvmlDeviceGetComputeRunningProcesses_v2(struct gpu *gpu, unsigned *count, struct process *out)
{
    return processes(gpu, "processes.old", count, out);
}

/* "use 1", "use.0.pid 4242", "use.0.stamp 1000", "use.0.sm 40" */

struct use {
    unsigned pid;
    unsigned long long stamp;
    unsigned sm, memory, encoder, decoder;
};
_Static_assert(sizeof(struct use) == 32, "nvmlProcessUtilizationSample_t");

API int nvmlDeviceGetProcessUtilization(struct gpu *gpu, struct use *out, unsigned *count, unsigned long long since)
{
    unsigned there;
    (void)since;
    if (!out) {
        int code = unsigned32(gpu, "use", &there);
        if (code != OK)
            return code;
        *count = there;
        return there ? INSUFFICIENT_SIZE : OK;
    }
    for (unsigned i = 0; i < *count; i++) {
        char key[32];
        out[i] = (struct use){0};
        snprintf(key, sizeof key, "use.%u.pid", i);
        unsigned32(gpu, key, &out[i].pid);
        snprintf(key, sizeof key, "use.%u.stamp", i);
        number(gpu, key, &out[i].stamp);
        snprintf(key, sizeof key, "use.%u.sm", i);
        unsigned32(gpu, key, &out[i].sm);
    }
    return OK;
}

