/* A stand-in for libnvidia-ml.so.1 that plays a script: the NVML code of tuimon, and the real binding under it, run on
 * machines without a GPU. It needs no NVIDIA header; the layouts it shares with the binding are checked at compile time.
 *
 * The script is the text file named by FAKE_NVML_SCRIPT, read at nvmlInit. Each line is
 *
 *     <who> <key> <answer> [<answer> ...]
 *
 * where <who> is a GPU's index or "*" (every GPU, and what belongs to none), and an answer is a number or a name ("_" for a
 * space), "!15" for the return code 15, or "~2000,..." to sleep 2000 ms before the rest. The n-th question gets the n-th
 * answer; the last one stays. A key that is not there means "not supported" (3), unless a default is given below.
 *
 * A handle that was used after it had answered with 15, 16 or 28 aborts the process: that is what the real library may do.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define API __attribute__((visibility("default")))
#define GPUS 16
#define WIDTH 64

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, LOST = 15, VERSION_MISMATCH = 25 };

struct line {
    char who[8], key[32], answers[32][WIDTH];
    int count, asked;
    struct line *next;
};
struct gpu {
    int index, lost;
};

static struct line *script;
static struct gpu gpus[GPUS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void load(void)
{
    const char *path = getenv("FAKE_NVML_SCRIPT");
    FILE *file = path ? fopen(path, "r") : NULL;
    char text[4096];
    while (script) {
        struct line *next = script->next;
        free(script);
        script = next;
    }
    memset(gpus, 0, sizeof gpus);
    while (file && fgets(text, sizeof text, file)) {
        char *rest, *who = strtok_r(text, " \t\n", &rest), *key = strtok_r(NULL, " \t\n", &rest), *answer;
        if (!key || *who == '#')
            continue;
        struct line *line = calloc(1, sizeof *line);
        snprintf(line->who, sizeof line->who, "%s", who);
        snprintf(line->key, sizeof line->key, "%s", key);
        while (line->count < 32 && (answer = strtok_r(NULL, " \t\n", &rest)))
            snprintf(line->answers[line->count++], WIDTH, "%s", answer);
        line->next = script;
        script = line;
    }
    if (file)
        fclose(file);
}

/* The next answer for a key into `out`: a return code, or -1 if the script does not know the key. */
static int ask(int index, const char *key, char *out)
{
    char who[8];
    struct line *found = NULL;
    int code = -1;
    long sleep_ms = 0;
    snprintf(who, sizeof who, "%d", index);
    pthread_mutex_lock(&lock);
    for (struct line *line = script; line; line = line->next)
        if (!strcmp(line->key, key) && (!strcmp(line->who, who) || (!found && !strcmp(line->who, "*"))))
            found = line;
    if (found && found->count) {
        const char *answer = found->answers[found->asked < found->count ? found->asked : found->count - 1];
        found->asked++;
        if (*answer == '~') {
            sleep_ms = atol(answer + 1);
            answer = strchr(answer, ',') ? strchr(answer, ',') + 1 : "0";
        }
        code = *answer == '!' ? atoi(answer + 1) : OK;
        if (code == OK)
            snprintf(out, WIDTH, "%s", answer);
    }
    pthread_mutex_unlock(&lock);
    if (sleep_ms) {
        struct timespec span = {sleep_ms / 1000, sleep_ms % 1000 * 1000000L};
        nanosleep(&span, NULL);
    }
    return code;
}

/* A text about a GPU, as it stands in the script. */
static int words(struct gpu *gpu, const char *key, char *out)
{
    if (gpu->lost) {
        fprintf(stderr, "fake NVML: GPU %d was used after it was lost\n", gpu->index);
        abort();
    }
    int code = ask(gpu->index, key, out);
    if (code == LOST || code == 16 || code == 28)
        gpu->lost = 1;
    return code < 0 ? NOT_SUPPORTED : code;
}

/* A number about a GPU; `gpu` may be NULL for what belongs to none. */
static int number(struct gpu *gpu, const char *key, unsigned long long *out)
{
    char text[WIDTH];
    if (gpu && gpu->lost) {
        fprintf(stderr, "fake NVML: GPU %d was used after it was lost\n", gpu->index);
        abort();
    }
    int code = ask(gpu ? gpu->index : -1, key, text);
    if (gpu && (code == LOST || code == 16 || code == 28))
        gpu->lost = 1;
    if (code == OK)
        *out = strtoull(text, NULL, 0);
    return code < 0 ? NOT_SUPPORTED : code;
}

static int unsigned32(struct gpu *gpu, const char *key, unsigned *out)
{
    unsigned long long value;
    int code = number(gpu, key, &value);
    if (code == OK)
        *out = (unsigned)value;
    return code;
}

/* ---- library */

API int nvmlInitWithFlags(unsigned flags)
{
    unsigned long long value;
    (void)flags;
    pthread_mutex_lock(&lock);
    load();
    pthread_mutex_unlock(&lock);
    int code = number(NULL, "init", &value);
    return code == NOT_SUPPORTED ? OK : code;
}

API int nvmlShutdown(void) { return OK; }

API const char *nvmlErrorString(int code)
{
    (void)code;
    return "an error of the fake NVML";
}

API int nvmlDeviceGetCount_v2(unsigned *out)
{
    *out = 1;
    int code = unsigned32(NULL, "count", out);
    return code == NOT_SUPPORTED ? OK : code;
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **out)
{
    unsigned long long value;
    if (index >= GPUS)
        return INVALID;
    gpus[index].index = (int)index;
    int code = number(&gpus[index], "handle", &value);
    *out = &gpus[index];
    return code == NOT_SUPPORTED ? OK : code;
}

API int nvmlDeviceGetName(struct gpu *gpu, char *out, unsigned size)
{
    char text[WIDTH] = "NVIDIA_Fake";
    int code = words(gpu, "name", text);
    if (code != OK && code != NOT_SUPPORTED)
        return code;
    for (char *c = text; *c; c++)
        if (*c == '_')
            *c = ' ';
    snprintf(out, size, "%s", text);
    return OK;
}

/* ---- values */

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

API int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    char text[WIDTH] = "580.00";
    int code = ask(-1, "driver", text);
    if (code > 0)
        return code;
    snprintf(out, size, "%s", text);
    return OK;
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

API int nvmlDeviceGetMigMode(struct gpu *gpu, unsigned *now, unsigned *pending)
{
    int code = unsigned32(gpu, "mig.mode", now);
    *pending = *now;
    return code;
}

/* ---- processes: "processes 2", "process.0.pid 4242", "process.0.memory 123" */

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

/* ---- GPM: "gpm.support 1", "gpm.get 0" for each sample, "gpm.10 38.5" for the value of metric 10 between the last two */

struct sample {
    struct gpu *gpu;
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

API int nvmlGpmSampleGet(struct gpu *gpu, struct sample *sample)
{
    unsigned long long value;
    int code = number(gpu, "gpm.get", &value);
    sample->gpu = gpu;
    return code == NOT_SUPPORTED ? OK : code;
}

API int nvmlGpmMetricsGet(struct metrics *all)
{
    if (all->version != 1)
        return VERSION_MISMATCH;
    if (!all->first->gpu || !all->second->gpu || all->first == all->second)
        return INVALID;
    for (unsigned i = 0; i < all->count; i++) {
        char key[32], text[WIDTH];
        snprintf(key, sizeof key, "gpm.%u", all->of[i].id);
        int code = ask(all->second->gpu->index, key, text);
        all->of[i].code = code < 0 ? NOT_SUPPORTED : code;
        if (code == OK)
            all->of[i].value = strtod(text, NULL);
    }
    return OK;
}
