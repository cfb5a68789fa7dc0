/* store_conformance_test.c - one suite for every store: what the seam (store/store.h) promises.
 *
 * The tests stand in store_conformance/, a file for each subject; rig.h says what they stand on. Another
 * store comes into the table below, with its own `store_kind`; it then brings its own last suite. */
#include <stdio.h>

#include "store_conformance/rig.h"

static const suite *const for_every_store[] = { &suite_enqueue, &suite_claim, &suite_finalize,
                                                &suite_operate, &suite_rescue, &suite_effect,
                                                &suite_refusal, &suite_prune, &suite_read };

static const struct {
    const store_kind *kind;
    const suite *own;
} stores[] = {
    { &store_sqlite, &suite_sqlite },
};

static int run(const store_kind *kind, const suite *what)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s: %s", kind->name, what->name);
    return _cmocka_run_group_tests(name, what->tests, what->count, NULL, NULL);
}

int main(void)
{
    int failures = 0;
    for (size_t i = 0; i < sizeof stores / sizeof stores[0]; i++) {
        store_under_test = stores[i].kind;
        for (size_t s = 0; s < sizeof for_every_store / sizeof for_every_store[0]; s++)
            failures += run(stores[i].kind, for_every_store[s]);
        failures += run(stores[i].kind, stores[i].own);
    }
    return failures;
}
