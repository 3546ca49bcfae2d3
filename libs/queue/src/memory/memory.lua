-- KEYS writes of the tenant, index, marks of erasures. ARGV write id, index member, write, when it was made, marks that speak of its
-- owner... The first write under an id stays. Answers -1 for one whose owner was erased since it was made.
function scripts.putMemoryWrite()
  for _, at in ipairs(redis.call('HMGET', KEYS[3], unpack(ARGV, 5))) do
    if at and tonumber(at) > tonumber(ARGV[4]) then return -1 end
  end
  local created = redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[3])
  redis.call('ZADD', KEYS[2], 'NX', now(), ARGV[2])
  return created
end

-- KEYS as above. ARGV write id, index member.
function scripts.removeMemoryWrite()
  redis.call('ZREM', KEYS[2], ARGV[2])
  return redis.call('HDEL', KEYS[1], ARGV[1])
end

-- KEYS record, request. ARGV id, digest, record, ttl ms of the request id. Answers {'created'|'known'|'other', id}.
function scripts.createConsolidation()
  local before = once(KEYS[2], ARGV[2], ARGV[1])
  if before then return before end
  if KEYS[2] ~= '' then redis.call('PEXPIRE', KEYS[2], ARGV[4]) end
  redis.call('SET', KEYS[1], ARGV[3], 'NX')
  return {'created', ARGV[1]}
end

-- Keeps a consolidation's record, unless whose it is was erased since it began. KEYS record, marks of the tenant.
-- ARGV record, the same without what it quotes, createdAt, field of the agent's mark or '', ms to keep it or 0.
function scripts.putConsolidation()
  local function after(field) return tonumber(redis.call('HGET', KEYS[2], field) or 0) > tonumber(ARGV[3]) end
  if after('tenant') or (ARGV[4] ~= '' and after(ARGV[4])) then return 0 end
  local record = ARGV[1]
  for _, at in ipairs(redis.call('HVALS', KEYS[2])) do
    if tonumber(at) > tonumber(ARGV[3]) then record = ARGV[2] end
  end
  if ARGV[5] == '0' then redis.call('SET', KEYS[1], record) else redis.call('SET', KEYS[1], record, 'PX', ARGV[5]) end
  return 1
end

-- KEYS record. ARGV record as it was read, record that takes its place. Answers 0 where somebody else was faster.
function scripts.swapRecord()
  if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
  redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
  return 1
end

-- KEYS record, request, outbox. ARGV id, digest, record, ttl ms of the request id, outbox member. Answers {'created'|'known'|'other', id}.
function scripts.createErasure()
  local before = once(KEYS[2], ARGV[2], ARGV[1])
  if before then return before end
  if KEYS[2] ~= '' then redis.call('PEXPIRE', KEYS[2], ARGV[4]) end
  redis.call('SET', KEYS[1], ARGV[3])
  redis.call('ZADD', KEYS[3], now(), ARGV[5])
  return {'created', ARGV[1]}
end

-- An erasure that goes on, also one that had failed. KEYS record, outbox. ARGV record, outbox member.
function scripts.keepErasure()
  redis.call('SET', KEYS[1], ARGV[1])
  redis.call('ZADD', KEYS[2], 'NX', now(), ARGV[2])
  return 1
end

-- The end of an erasure. KEYS record, outbox. ARGV record, ttl ms, outbox member.
function scripts.endErasure()
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  redis.call('ZREM', KEYS[2], ARGV[3])
  return 1
end

-- KEYS record. ARGV record. Starts unless one is running; answers the record that stands.
function scripts.startReembedding()
  local known = redis.call('GET', KEYS[1])
  if known and cjson.decode(known).state == 'running' then return known end
  redis.call('SET', KEYS[1], ARGV[1])
  return ARGV[1]
end

-- KEYS record. Answers the record that stands, or false.
function scripts.stopReembedding()
  local known = redis.call('GET', KEYS[1])
  if not known then return false end
  local record = cjson.decode(known)
  if record.state ~= 'running' then return known end
  -- Only this value is changed: a decoded null or number would not be written back as it was.
  local stopped = string.gsub(known, '"state":"running"', '"state":"stopped"', 1)
  redis.call('SET', KEYS[1], stopped)
  return stopped
end

-- KEYS record. ARGV id, record. Only the one that is running is changed; answers 1, or 0 where it was stopped or another one runs.
function scripts.putReembedding()
  local known = redis.call('GET', KEYS[1])
  if not known then return 0 end
  local record = cjson.decode(known)
  if record.id ~= ARGV[1] or record.state ~= 'running' then return 0 end
  redis.call('SET', KEYS[1], ARGV[2])
  return 1
end
