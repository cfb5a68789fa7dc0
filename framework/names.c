/* names.c - a counted bag of strings; see names.h. */
#include "names.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    struct entry *next;
    char text[];
} entry;

struct pawli_names {
    _Atomic unsigned holders;
    _Atomic bool closed;
    entry *entries; /* one thread at a time */
};

pawli_names *pawli_names_create(void)
{
    pawli_names *names = calloc(1, sizeof *names);
    if (names != NULL)
        atomic_init(&names->holders, 1);
    return names;
}

pawli_names *pawli_names_hold(pawli_names *names)
{
    atomic_fetch_add(&names->holders, 1);
    return names;
}

void pawli_names_close(pawli_names *names)
{
    if (names != NULL)
        atomic_store(&names->closed, true);
}

bool pawli_names_closed(const pawli_names *names)
{
    return atomic_load(&names->closed);
}

void pawli_names_release(pawli_names *names)
{
    if (names == NULL || atomic_fetch_sub(&names->holders, 1) != 1)
        return;
    while (names->entries != NULL) {
        entry *gone = names->entries;
        names->entries = gone->next;
        free(gone);
    }
    free(names);
}

const char *pawli_names_add(pawli_names *names, const char *text)
{
    size_t bytes = strlen(text) + 1;
    entry *added = malloc(sizeof *added + bytes);
    if (added == NULL)
        return NULL;
    memcpy(added->text, text, bytes);
    added->next = names->entries;
    names->entries = added;
    return added->text;
}
