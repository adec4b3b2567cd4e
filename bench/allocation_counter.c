/* Counter of the memory blocks that Python allocates in one thread. `bench/call_counts.py` compiles it, and
 * `bench/counted_gateway.py` loads it into the gateway. The declarations are those of CPython's documented C API
 * ("Customize Memory Allocators"), so that no header files of Python are needed. */
#include <pthread.h>
#include <stddef.h>

typedef struct {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block);
} Allocator;

extern void PyMem_GetAllocator(int domain, Allocator *allocator);
extern void PyMem_SetAllocator(int domain, Allocator *allocator);

enum { MEMORY = 1, OBJECTS = 2, DOMAINS };  /* PYMEM_DOMAIN_MEM and PYMEM_DOMAIN_OBJ */

static Allocator originals[DOMAINS];
static pthread_t counted;
static unsigned long count;

static void note(void) { count += pthread_equal(pthread_self(), counted) != 0; }

static void *counting_malloc(void *context, size_t size) {
    Allocator *original = context;
    note();
    return original->malloc(original->context, size);
}

static void *counting_calloc(void *context, size_t number, size_t size) {
    Allocator *original = context;
    note();
    return original->calloc(original->context, number, size);
}

static void *plain_realloc(void *context, void *block, size_t size) {
    Allocator *original = context;
    if (block == NULL) note();
    return original->realloc(original->context, block, size);
}

static void plain_free(void *context, void *block) {
    Allocator *original = context;
    original->free(original->context, block);
}

/* Count the allocations of the calling thread from now on. */
void begin(void) {
    counted = pthread_self();
    for (int domain = MEMORY; domain < DOMAINS; domain++) {
        Allocator own = {&originals[domain], counting_malloc, counting_calloc, plain_realloc, plain_free};
        PyMem_GetAllocator(domain, &originals[domain]);
        PyMem_SetAllocator(domain, &own);
    }
}

/* Return the allocations since `begin`. */
unsigned long allocations(void) { return count; }
