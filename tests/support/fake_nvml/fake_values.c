/* The single values of a GPU. */
#include "fake.h"

#include <stdio.h>

API int nvmlDeviceGetUtilizationRates(struct gpu *gpu, unsigned *out)
{
    out[1] = 0;
    return unsigned32(gpu, "utilization", &out[0]);
}

struct memory {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
_Static_assert(sizeof(struct memory) == 0x28, "nvmlMemory_v2_t");

API int nvmlDeviceGetMemoryInfo_v2(struct gpu *gpu, struct memory *out)
{
    if (out->version != (2u << 24 | sizeof *out))
        return VERSION_MISMATCH;
    int code = number(gpu, "memory.total", &out->total);
    if (code == OK)
        code = number(gpu, "memory.used", &out->used);
    out->reserved = out->total < 629145600 ? 0 : 629145600;
    return code;
}

struct temperature {
    unsigned version, sensor;
    int value;
};

API int nvmlDeviceGetTemperatureV(struct gpu *gpu, struct temperature *out)
{
    unsigned value;
    int code = unsigned32(gpu, "temperature.v", &value);
    if (code == OK)
        out->value = (int)value;
    return code;
}

API int nvmlDeviceGetTemperature(struct gpu *gpu, unsigned sensor, unsigned *out)
{
    (void)sensor;
    return unsigned32(gpu, "temperature", out);
}

API int nvmlDeviceGetPowerUsage(struct gpu *gpu, unsigned *out) { return unsigned32(gpu, "power.mw", out); }
API int nvmlDeviceGetEnforcedPowerLimit(struct gpu *gpu, unsigned *out) { return unsigned32(gpu, "power.limit.mw", out); }

static const char *const CLOCKS[] = {"graphics", "sm", "memory", "video"};

API int nvmlDeviceGetClockInfo(struct gpu *gpu, unsigned type, unsigned *out)
{
    char key[32];
    if (type > 3)
        return INVALID;
    snprintf(key, sizeof key, "clock.%s", CLOCKS[type]);
    return unsigned32(gpu, key, out);
}

API int nvmlDeviceGetMaxClockInfo(struct gpu *gpu, unsigned type, unsigned *out)
{
    char key[32];
    if (type > 3)
        return INVALID;
    snprintf(key, sizeof key, "clock.%s.max", CLOCKS[type]);
    return unsigned32(gpu, key, out);
}

API int nvmlDeviceGetMemoryBusWidth(struct gpu *gpu, unsigned *out) { return unsigned32(gpu, "bus.bits", out); }
API int nvmlDeviceGetNumGpuCores(struct gpu *gpu, unsigned *out) { return unsigned32(gpu, "cores", out); }

API int nvmlDeviceGetCudaComputeCapability(struct gpu *gpu, int *major, int *minor)
{
    unsigned value;
    int code = unsigned32(gpu, "capability", &value);
    if (code == OK) {
        *major = (int)(value / 10);
        *minor = (int)(value % 10);
    }
    return code;
}

API int nvmlDeviceGetCurrentClocksEventReasons(struct gpu *gpu, unsigned long long *out)
{
    return number(gpu, "reasons", out);
}

API int nvmlDeviceGetCurrentClocksThrottleReasons(struct gpu *gpu, unsigned long long *out)
{
    return number(gpu, "reasons.old", out);
}

API int nvmlDeviceGetTotalEnergyConsumption(struct gpu *gpu, unsigned long long *out) { return number(gpu, "energy.mj", out); }
API int nvmlDeviceGetFanSpeed(struct gpu *gpu, unsigned *out) { return unsigned32(gpu, "fan", out); }
API int nvmlDeviceGetMinorNumber(struct gpu *gpu, unsigned *out) { return unsigned32(gpu, "minor", out); }
API int nvmlDeviceGetVirtualizationMode(struct gpu *gpu, unsigned *out) { return unsigned32(gpu, "virtual", out); }

API int nvmlDeviceGetTotalEccErrors(struct gpu *gpu, unsigned type, unsigned counter, unsigned long long *out)
{
    if (counter != 0)
        return INVALID;
    return number(gpu, type ? "ecc.uncorrected" : "ecc.corrected", out);
}

API int nvmlDeviceGetPcieThroughput(struct gpu *gpu, unsigned counter, unsigned *out)
{
    return unsigned32(gpu, counter ? "pcie.rx" : "pcie.tx", out);
}

API int nvmlDeviceGetUUID(struct gpu *gpu, char *out, unsigned size)
{
    char text[WIDTH];
    int code = words(gpu, "uuid", text);
    if (code == OK)
        snprintf(out, size, "%s", text);
    return code;
}

struct pci {
    char short_id[16];
    unsigned domain, bus, device, device_id, subsystem;
    char id[32];
};
_Static_assert(sizeof(struct pci) == 68, "nvmlPciInfo_t");

API int nvmlDeviceGetPciInfo_v3(struct gpu *gpu, struct pci *out)
{
    char text[WIDTH];
    int code = words(gpu, "pci", text);
    if (code == OK)
        snprintf(out->id, sizeof out->id, "%.31s", text);
    return code;
}

/* ---- fields: "field.138 1000" is a number of 64 bits; "!3" is the field's own return code */

struct field {
    unsigned id, scope;
    long long stamp, latency;
    unsigned type;
    int code;
    unsigned long long value;
};
_Static_assert(sizeof(struct field) == 40, "nvmlFieldValue_t");

API int nvmlDeviceGetFieldValues(struct gpu *gpu, int count, struct field *fields)
{
    int code = refused(gpu, "fields"); /* the call as a whole */
    if (code != OK)
        return code;
    for (int i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof key, "field.%u", fields[i].id);
        fields[i].type = 3;
        fields[i].code = number(gpu, key, &fields[i].value);
    }
    return OK;
}
