"""All that a client may do, with Python's own sqlite3 module, while a pool runs; prints what went wrong."""
import sqlite3
import sys
import time

KEY = sys.argv[2]
db = sqlite3.connect(sys.argv[1], timeout=5, isolation_level=None)
db.execute("PRAGMA wal_autocheckpoint=0")


def one(sql, *values):
    return db.execute(sql, values).fetchone()


def expect(what, is_so):
    if not is_so:
        sys.exit("tour.py: " + what)


def refused(sql, sentence, *values):
    try:
        db.execute(sql, values)
    except sqlite3.IntegrityError as error:
        expect(f"{sql}: {error}", str(error).startswith("pawl: ") and sentence in str(error))
    else:
        expect(f"{sql}: was not refused", False)


def becomes(job, status):
    until = time.monotonic() + 20
    while one("SELECT status FROM pawl_jobs WHERE id = ?", job) != (status,):
        expect(f"job {job} did not become {status}", time.monotonic() < until)
        time.sleep(0.01)


db.execute("BEGIN IMMEDIATE")
db.execute("INSERT INTO pawl_jobs (kind, payload, available_at, idempotency_key) VALUES (?, ?, ?, ?)",
           ("mail", b"eve@example.com", "2100-01-01", KEY))
(job,) = one("SELECT id FROM pawl_last")
db.execute("COMMIT")
db.execute("INSERT OR REPLACE INTO pawl_jobs (kind, payload, idempotency_key) VALUES ('mail', 'other', ?)", (KEY,))
expect("a known key is not found", one("SELECT id FROM pawl_last") == (job,))
expect("its row is another", one("SELECT status, payload, priority, available_at FROM pawl_jobs WHERE id = ?", job)
       == ("pending", b"eve@example.com", 0, "2100-01-01 00:00:00.000"))
db.execute("UPDATE pawl_jobs SET priority = 7, payload = 'eva@example.com' WHERE idempotency_key = ?", (KEY,))
expect("it was not changed", one("SELECT priority, payload FROM pawl_jobs WHERE id = ?", job)
       == (7, "eva@example.com"))
db.execute("UPDATE pawl_jobs SET status = 'cancelled' WHERE id = ?", (job,))
expect("it was not cancelled", one("SELECT status FROM pawl_jobs WHERE id = ?", job) == ("cancelled",))
refused("UPDATE pawl_jobs SET priority = 1 WHERE id = ?", "only a pending job can be changed", job)
refused("INSERT INTO pawl_jobs (kind, available_at) VALUES ('mail', ?)", "looks like seconds", int(time.time()))
refused("INSERT INTO pawl_jobs (kind, idempotency_key) VALUES ('mail', ?)", "is a blob", b"key")
refused("DELETE FROM pawl_jobs WHERE id = ?", "jobs are not deleted by hand", job)
db.execute("UPDATE pawl_jobs SET status = 'pending' WHERE id = ?", (job,))
becomes(job, "succeeded")

db.execute("INSERT INTO pawl_jobs (kind, payload) VALUES ('mail', 'bounce@example.com')")
(lost,) = one("SELECT id FROM pawl_last")
becomes(lost, "failed")
expect("pawl_dead", one("SELECT id, last_error FROM pawl_dead LIMIT 1") == (lost, "no such mailbox"))
expect("pawl_errors", one("SELECT last_error FROM pawl_errors WHERE kind = 'mail'") == ("no such mailbox",))
expect("pawl_queues", one("SELECT failed >= 1 AND due = 0 FROM pawl_queues WHERE queue = 'default'") == (1,))
expect("pawl_expired", one("SELECT count(*) FROM pawl_expired") == (0,))
expect("the counts", dict(db.execute("SELECT status, COUNT(*) FROM pawl_jobs GROUP BY status"))["failed"] >= 1)
print("tour done")
