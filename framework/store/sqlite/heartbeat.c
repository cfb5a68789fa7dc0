/* heartbeat.c - extends the leases of claims that are still held.
 * Threads: the writer's role, inside its transaction.
 * Keeps:   I6 only where status = running and the fence matches; nobody revives a taken claim. */
#include "sqlite_store.h"

int pawli_heartbeat_apply(pawli_sqlite *s, pawli_heartbeat *heartbeat)
{
    const pawli_claim *claim = heartbeat->claim;
    int64_t lease_ms = s->host.options->lease_ms;
    heartbeat->lease_boot_ms = s->batch->boot_ms + lease_ms;
    int rc = pawli_run(s, PAWLI_SQL_HEARTBEAT, NUM(claim->job), NUM(claim->fence),
                       NUM(s->batch->now_ms + lease_ms), NUM(heartbeat->lease_boot_ms));
    if (rc == SQLITE_OK)
        heartbeat->status = sqlite3_changes(s->db) == 1 ? PAWL_OK : PAWL_ERR_LEASE_LOST;
    return rc;
}
