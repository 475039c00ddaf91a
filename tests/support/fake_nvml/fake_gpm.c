/* GPM: "gpm.support 1", "gpm.get 0" for each sample, "gpm.10 38.5" for the value of metric 10 between the last two; of GPU instance
 * 3 "gpm.mig.get 0" and "gpm.10.3 38.5". */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>

struct sample {
    struct gpu *gpu;
    int instance; /* of a GPU that is in MIG mode; -1: the whole GPU */
};
struct support {
    unsigned version, supported;
};
struct metric {
    unsigned id;
    int code;
    double value;
    char *names[3];
};
struct metrics {
    unsigned version, count;
    struct sample *first, *second;
    struct metric of[];
};
_Static_assert(sizeof(struct metric) == 40, "nvmlGpmMetric_t");
static int samples; /* that are allocated and not freed */

API int nvmlGpmQueryDeviceSupport(struct gpu *gpu, struct support *out)
{
    out->supported = 0;
    int code = unsigned32(gpu, "gpm.support", &out->supported);
    return code == NOT_SUPPORTED ? OK : code;
}

API int nvmlGpmSampleAlloc(struct sample **out)
{
    *out = calloc(1, sizeof **out);
    samples++;
    return OK;
}

API int nvmlGpmSampleFree(struct sample *sample)
{
    free(sample);
    samples--;
    return OK;
}

/* Not of the real library: how many samples a test has left behind. */
API int fakeSamples(void) { return samples; }
API void fakeForgetSamples(int count) { samples -= count; }

static int get(struct gpu *gpu, int instance, const char *key, struct sample *sample)
{
    sample->gpu = gpu;
    sample->instance = instance;
    return refused(gpu, key);
}

API int nvmlGpmSampleGet(struct gpu *gpu, struct sample *sample) { return get(gpu, -1, "gpm.get", sample); }

API int nvmlGpmMigSampleGet(struct gpu *gpu, unsigned instance, struct sample *sample)
{
    return gpu->parent ? INVALID : get(gpu, (int)instance, "gpm.mig.get", sample);
}

API int nvmlGpmMetricsGet(struct metrics *all)
{
    if (all->version != 1)
        return VERSION_MISMATCH;
    if (!all->first->gpu || !all->second->gpu || all->first == all->second || all->first->instance != all->second->instance)
        return INVALID;
    struct gpu *gpu = all->second->gpu;
    for (unsigned i = 0; i < all->count; i++) {
        char key[32];
        if (all->second->instance < 0)
            snprintf(key, sizeof key, "gpm.%u", all->of[i].id);
        else
            snprintf(key, sizeof key, "gpm.%u.%d", all->of[i].id, all->second->instance);
        all->of[i].code = real(gpu, key, &all->of[i].value);
        if (gpu->lost)
            return all->of[i].code;
    }
    return OK;
}
