/* What the parts of the scripted NVML share. */
#ifndef FAKE_H
#define FAKE_H

#define API __attribute__((visibility("default")))
#define WIDTH 64

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMEOUT = 10, LOST = 15, VERSION_MISMATCH = 25 };

/* A GPU, or a MIG device of one: then `parent` is set and `who` is "<gpu>.<number>". */
struct gpu {
    char who[24];
    int index, lost;
    struct gpu *parent;
};

/* The next answer for a key into `out` (WIDTH characters): a return code, or -1 if the script does not know the key. */
int ask(const char *who, const char *key, char *out);

/* The number of GPU `index`, or its MIG device `number`. NULL for one that there cannot be. */
struct gpu *gpu_at(unsigned index);
struct gpu *part_at(struct gpu *gpu, unsigned number);

/* An answer about a GPU; `gpu` may be NULL for what belongs to none. Aborts where the GPU is lost. */
int words(struct gpu *gpu, const char *key, char *out);
int number(struct gpu *gpu, const char *key, unsigned long long *out);
int unsigned32(struct gpu *gpu, const char *key, unsigned *out);
int real(struct gpu *gpu, const char *key, double *out);
/* Whether a call without an answer of its own goes well: it does, if the script does not say otherwise. */
int refused(struct gpu *gpu, const char *key);

void rest_ms(long ms);

#endif
