-- Writes a record with its request id and its entry in the outbox.
-- KEYS record, request or '', outbox. ARGV id, digest, record, ttl ms of the request id, outbox member.
-- Answers {'created'|'known'|'other', id}. 'other': the request id was used for another record.
function scripts.createRecord()
  local before = once(KEYS[2], ARGV[2], ARGV[1])
  if before then return before end
  if KEYS[2] ~= '' then redis.call('PEXPIRE', KEYS[2], ARGV[4]) end
  redis.call('SET', KEYS[1], ARGV[3])
  redis.call('ZADD', KEYS[3], now(), ARGV[5])
  return {'created', ARGV[1]}
end

-- Sets when an outbox entry is checked next, or drops the entry. Does nothing if its score changed since it was read.
-- KEYS outbox. ARGV member, score as it was read, next score or '' to drop it. Answers 1, or 0 if nothing was done.
function scripts.moveEntry()
  local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
  if not score or tonumber(score) ~= tonumber(ARGV[2]) then return 0 end
  if ARGV[3] == '' then return redis.call('ZREM', KEYS[1], ARGV[1]) end
  redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
  return 1
end
