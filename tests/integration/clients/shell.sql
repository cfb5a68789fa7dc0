PRAGMA wal_autocheckpoint=0;
-- enqueue: only the kind is needed
INSERT INTO pawl_jobs (kind, payload) VALUES ('mail', 'ann@example.com');
INSERT INTO pawl_jobs (queue, kind, payload, priority, available_at, idempotency_key)
  VALUES ('slow', 'mail', 'bob@example.com', 5, datetime('now', '+1 hour'), 'order-17');
-- look
SELECT status, COUNT(*) FROM pawl_jobs GROUP BY status;
SELECT id, payload, available_at FROM pawl_jobs WHERE kind = 'mail' AND idempotency_key = 'order-17';
-- change what waits: first in its queue, and due now
UPDATE pawl_jobs SET priority = 9, available_at = datetime('now')
  WHERE kind = 'mail' AND idempotency_key = 'order-17' AND status = 'pending';
-- cancel, and requeue what has failed or was cancelled
UPDATE pawl_jobs SET status = 'cancelled' WHERE queue = 'slow' AND status = 'pending';
UPDATE pawl_jobs SET status = 'pending' WHERE queue = 'slow' AND status IN ('failed', 'cancelled');
