/* A stand-in for libnvidia-ml.so.1 that plays a script: the NVML code of tuimon, and the real binding under it, run on
 * machines without a GPU. It needs no NVIDIA header; the layouts it shares with the binding are checked at compile time.
 *
 * The script is the text file named by FAKE_NVML_SCRIPT, read at the first nvmlInit and again whenever the file has changed.
 * Each line is
 *
 *     <who> <key> <answer> [<answer> ...]
 *
 * where <who> is a GPU's index, "0.1" for MIG device 1 of GPU 0, or "*" (all, and what belongs to none), and an answer is a
 * number or a name ("_" for a space), "!15" for the return code 15, or "~2000,..." to sleep 2000 ms before the rest. The n-th
 * question gets the n-th answer; the last one stays. In a line with "@5" the time decides instead: what follows it is the answer
 * from 5 s after the script was read on. A key that is not there means "not supported" (3), unless a default is given below.
 *
 * A handle that was used after it had answered with 15, 16 or 28 aborts the process: that is what the real library may do.
 */
#include "fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define GPUS 16
#define PARTS 8

struct line {
    char who[24], key[32], answers[32][WIDTH];
    int count, asked, timed;
    struct line *next;
};

static struct line *script;
static struct gpu gpus[GPUS], parts[GPUS][PARTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct timespec changed, began; /* the script file's time, and when it was read */
static int started;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - began.tv_sec) + (double)(now.tv_nsec - began.tv_nsec) / 1e9;
}

/* Read the script, if it is another one than was read. Under the lock. */
static void load(void)
{
    const char *path = getenv("FAKE_NVML_SCRIPT");
    struct stat of;
    char text[4096];
    if (!path || stat(path, &of) || !memcmp(&of.st_mtim, &changed, sizeof changed))
        return;
    FILE *file = fopen(path, "r");
    if (!file)
        return;
    changed = of.st_mtim;
    clock_gettime(CLOCK_MONOTONIC, &began);
    while (script) {
        struct line *next = script->next;
        free(script);
        script = next;
    }
    while (fgets(text, sizeof text, file)) {
        char *rest, *who = strtok_r(text, " \t\n", &rest), *key = strtok_r(NULL, " \t\n", &rest), *answer;
        if (!key || *who == '#')
            continue;
        struct line *line = calloc(1, sizeof *line);
        snprintf(line->who, sizeof line->who, "%s", who);
        snprintf(line->key, sizeof line->key, "%s", key);
        while (line->count < 32 && (answer = strtok_r(NULL, " \t\n", &rest))) {
            line->timed |= *answer == '@';
            snprintf(line->answers[line->count++], WIDTH, "%s", answer);
        }
        line->next = script;
        script = line;
    }
    fclose(file);
}

static const char *timed_answer(const struct line *line)
{
    const char *answer = NULL;
    double now = now_s(), from = 0;
    for (int i = 0; i < line->count; i++)
        if (*line->answers[i] == '@')
            from = atof(line->answers[i] + 1);
        else if (now >= from)
            answer = line->answers[i];
    return answer;
}

void rest_ms(long ms)
{
    struct timespec span = {ms / 1000, ms % 1000 * 1000000L};
    if (ms > 0)
        nanosleep(&span, NULL);
}

int ask(const char *who, const char *key, char *out)
{
    struct line *found = NULL;
    int code = -1;
    long sleep_ms = 0;
    pthread_mutex_lock(&lock);
    load();
    for (struct line *line = script; line; line = line->next)
        if (!strcmp(line->key, key) && (!strcmp(line->who, who) || (!found && !strcmp(line->who, "*"))))
            found = line;
    const char *answer = NULL;
    if (found && found->timed)
        answer = timed_answer(found);
    else if (found && found->count)
        answer = found->answers[found->asked < found->count ? found->asked : found->count - 1];
    if (answer) {
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
    rest_ms(sleep_ms);
    return code;
}

struct gpu *gpu_at(unsigned index)
{
    if (index >= GPUS)
        return NULL;
    gpus[index].index = (int)index;
    snprintf(gpus[index].who, sizeof gpus[index].who, "%u", index);
    return &gpus[index];
}

struct gpu *part_at(struct gpu *gpu, unsigned number)
{
    if (number >= PARTS)
        return NULL;
    struct gpu *part = &parts[gpu->index][number];
    part->index = gpu->index;
    part->parent = gpu;
    snprintf(part->who, sizeof part->who, "%d.%u", gpu->index, number);
    return part;
}

/* -1: the script does not know the key. */
static int told(struct gpu *gpu, const char *key, char *out)
{
    struct gpu *whole = gpu && gpu->parent ? gpu->parent : gpu;
    if (whole && (gpu->lost || whole->lost)) {
        fprintf(stderr, "fake NVML: GPU %s was used after it was lost\n", gpu->who);
        abort();
    }
    int code = ask(gpu ? gpu->who : "*", key, out);
    if (whole && (code == LOST || code == 16 || code == 28))
        whole->lost = 1;
    return code;
}

int words(struct gpu *gpu, const char *key, char *out)
{
    int code = told(gpu, key, out);
    return code < 0 ? NOT_SUPPORTED : code;
}

int refused(struct gpu *gpu, const char *key)
{
    char text[WIDTH];
    int code = told(gpu, key, text);
    return code < 0 ? OK : code;
}

int number(struct gpu *gpu, const char *key, unsigned long long *out)
{
    char text[WIDTH];
    int code = words(gpu, key, text);
    if (code == OK)
        *out = strtoull(text, NULL, 0);
    return code;
}

int unsigned32(struct gpu *gpu, const char *key, unsigned *out)
{
    unsigned long long value;
    int code = number(gpu, key, &value);
    if (code == OK)
        *out = (unsigned)value;
    return code;
}

int real(struct gpu *gpu, const char *key, double *out)
{
    char text[WIDTH];
    int code = words(gpu, key, text);
    if (code == OK)
        *out = strtod(text, NULL);
    return code;
}

static void forget(void)
{
    memset(gpus, 0, sizeof gpus);
    memset(parts, 0, sizeof parts);
    memset(&changed, 0, sizeof changed);
}

/* Not of the real library: begin anew, as in a fresh process. */
API void fakeReset(void)
{
    pthread_mutex_lock(&lock);
    forget();
    started = 0;
    pthread_mutex_unlock(&lock);
}

/* ---- library */

API int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    pthread_mutex_lock(&lock);
    if (!started)
        forget();
    pthread_mutex_unlock(&lock);
    int code = refused(NULL, "init");
    pthread_mutex_lock(&lock);
    started += code == OK;
    pthread_mutex_unlock(&lock);
    return code;
}

API int nvmlShutdown(void)
{
    pthread_mutex_lock(&lock);
    started -= started > 0;
    pthread_mutex_unlock(&lock);
    return OK;
}

/* Not of the real library: how many nvmlInit have had no nvmlShutdown. */
API int fakeStarted(void) { return started; }

API const char *nvmlErrorString(int code)
{
    (void)code;
    return "an error of the fake NVML";
}

API int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    char text[WIDTH] = "580.00";
    int code = ask("*", "driver", text);
    if (code > 0)
        return code;
    snprintf(out, size, "%s", text);
    return OK;
}

API int nvmlDeviceGetCount_v2(unsigned *out)
{
    *out = 1;
    int code = unsigned32(NULL, "count", out);
    return code == NOT_SUPPORTED ? OK : code;
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **out)
{
    *out = gpu_at(index);
    return *out ? refused(*out, "handle") : INVALID;
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
