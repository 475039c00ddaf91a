/* MIG: "0 mig.mode 1", "0 mig.count 7" for the most there can be, and for MIG device 1 of GPU 0 "0.1 handle 0" (without it there
 * is none of that number), "0.1 gi 3", "0.1 ci 0", "0.1 sms 16"; its other values have the keys of a GPU's. */
#include "fake.h"

API int nvmlDeviceGetMigMode(struct gpu *gpu, unsigned *now, unsigned *pending)
{
    int code = unsigned32(gpu, "mig.mode", now);
    if (code == OK)
        *pending = *now;
    return code;
}

API int nvmlDeviceGetMaxMigDeviceCount(struct gpu *gpu, unsigned *out) { return unsigned32(gpu, "mig.count", out); }

API int nvmlDeviceGetMigDeviceHandleByIndex(struct gpu *gpu, unsigned number_, struct gpu **out)
{
    unsigned long long value;
    *out = part_at(gpu, number_);
    if (!*out)
        return INVALID;
    int code = number(*out, "handle", &value);
    return code == NOT_SUPPORTED ? NOT_FOUND : code;
}

API int nvmlDeviceGetGpuInstanceId(struct gpu *part, unsigned *out) { return unsigned32(part, "gi", out); }
API int nvmlDeviceGetComputeInstanceId(struct gpu *part, unsigned *out) { return unsigned32(part, "ci", out); }

struct attributes {
    unsigned sms, counts[7];
    unsigned long long memory_mb;
};
_Static_assert(sizeof(struct attributes) == 40, "nvmlDeviceAttributes_t");

API int nvmlDeviceGetAttributes_v2(struct gpu *part, struct attributes *out)
{
    return part->parent ? unsigned32(part, "sms", &out->sms) : NOT_SUPPORTED;
}
