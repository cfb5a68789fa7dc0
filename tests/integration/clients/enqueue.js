const sqlite3 = require('sqlite3')
const db = new sqlite3.Database(process.argv[2])
db.configure('busyTimeout', 5000)

db.serialize(() => {
  db.run('PRAGMA wal_autocheckpoint=0')
  db.run('BEGIN IMMEDIATE')
  db.run('INSERT INTO pawl_jobs (kind, payload, available_at) VALUES (?, ?, ?)',
    ['mail', 'dora@example.com', Date.now()])
  db.get('SELECT id FROM pawl_last', (error, row) => console.log('enqueued', row.id))
  db.run('COMMIT')
})
