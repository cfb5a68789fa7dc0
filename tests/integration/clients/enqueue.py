import sqlite3, sys

db = sqlite3.connect(sys.argv[1], timeout=5, isolation_level=None)
db.execute("PRAGMA wal_autocheckpoint=0")
db.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, address TEXT, job INTEGER)")

db.execute("BEGIN IMMEDIATE")
order = db.execute("INSERT INTO orders (address) VALUES ('cid@example.com')").lastrowid
db.execute("INSERT INTO pawl_jobs (kind, payload, idempotency_key) VALUES ('mail', ?, ?)",
           ("cid@example.com", f"order {order}"))
(job,) = db.execute("SELECT id FROM pawl_last").fetchone()
db.execute("UPDATE orders SET job = ? WHERE id = ?", (job, order))
db.execute("COMMIT")
print("enqueued", job)
