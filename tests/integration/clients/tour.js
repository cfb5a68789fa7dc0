// All that a client may do, with Debian's node-sqlite3, while a pool runs; tells what went wrong.
const sqlite3 = require('sqlite3')
const key = process.argv[3]
const db = new sqlite3.Database(process.argv[2])
db.configure('busyTimeout', 5000)

const run = (sql, ...values) => new Promise((resolve, reject) =>
  db.run(sql, values, (error) => error ? reject(error) : resolve()))
const one = (sql, ...values) => new Promise((resolve, reject) =>
  db.get(sql, values, (error, row) => error ? reject(error) : resolve(row)))

function expect (what, isSo) {
  if (!isSo) throw new Error(what)
}

async function refused (sentence, sql, ...values) {
  const error = await run(sql, ...values).then(() => ({ message: 'was not refused' }), (e) => e)
  expect(`${sql}: ${error.message}`, error.message.includes('pawl: ') && error.message.includes(sentence))
}

async function becomes (job, status) {
  const until = Date.now() + 20000
  while ((await one('SELECT status FROM pawl_jobs WHERE id = ?', job)).status !== status) {
    expect(`job ${job} did not become ${status}`, Date.now() < until)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

async function tour () {
  await run('PRAGMA wal_autocheckpoint=0')
  await run('BEGIN IMMEDIATE')
  await run('INSERT INTO pawl_jobs (kind, payload, available_at, priority, idempotency_key) VALUES (?, ?, ?, ?, ?)',
    'mail', Buffer.from('finn@example.com'), Date.now() + 3600000, 5, key) // a number that JavaScript has as a float
  const { id } = await one('SELECT id FROM pawl_last')
  await run('COMMIT')
  await run("INSERT OR REPLACE INTO pawl_jobs (kind, payload, idempotency_key) VALUES ('mail', 'other', ?)", key)
  expect('a known key is not found', (await one('SELECT id FROM pawl_last')).id === id)
  const row = await one('SELECT * FROM pawl_jobs WHERE id = ?', id)
  expect('its row is another', row.status === 'pending' && row.priority === 5 && row.idempotency_key === key &&
    row.payload.toString() === 'finn@example.com')
  await run('UPDATE pawl_jobs SET priority = ? WHERE id = ?', 7, id)
  expect('it was not changed', (await one('SELECT priority FROM pawl_jobs WHERE id = ?', id)).priority === 7)
  await run("UPDATE pawl_jobs SET status = 'cancelled' WHERE id = ?", id)
  await refused('only a pending job can be changed', 'UPDATE pawl_jobs SET priority = 1 WHERE id = ?', id)
  await refused('priority must be an integer', "INSERT INTO pawl_jobs (kind, priority) VALUES ('mail', ?)", 1.5)
  await refused('jobs are not deleted by hand', 'DELETE FROM pawl_jobs WHERE id = ?', id)
  await run("UPDATE pawl_jobs SET status = 'pending' WHERE id = ?", id)
  await becomes(id, 'succeeded')
  await run("INSERT INTO pawl_jobs (kind, payload) VALUES ('mail', 'bounce@example.com')")
  const lost = (await one('SELECT id FROM pawl_last')).id
  await becomes(lost, 'failed')
  expect('pawl_dead', (await one('SELECT id FROM pawl_dead LIMIT 1')).id === lost)
  console.log('tour done')
}

tour().catch((error) => { console.error('tour.js:', error.message); process.exit(1) })
