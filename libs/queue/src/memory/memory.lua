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

-- A record that is not over (keptMs '0') is in the outbox; any other has left it and expires.
local function keep(record, member, keptMs)
  if keptMs == '0' then
    redis.call('SET', KEYS[1], record)
    redis.call('ZADD', KEYS[2], 'NX', now(), member)
  else
    redis.call('SET', KEYS[1], record, 'PX', keptMs)
    redis.call('ZREM', KEYS[2], member)
  end
  return 1
end

-- KEYS record, outbox. ARGV record, outbox member, ms to keep it or 0.
function scripts.putRecord()
  return keep(ARGV[1], ARGV[2], ARGV[3])
end

-- Keeps a consolidation's record, unless its tenant or agent was erased since it began; without its quotes where anybody was.
-- KEYS record, outbox, marks of the tenant.
-- ARGV record, outbox member, ms to keep it or 0, the record without its quotes, createdAt, field of the agent's mark or ''.
function scripts.putConsolidation()
  local function erased(field) return tonumber(redis.call('HGET', KEYS[3], field) or 0) > tonumber(ARGV[5]) end
  if erased('tenant') or (ARGV[6] ~= '' and erased(ARGV[6])) then
    redis.call('ZREM', KEYS[2], ARGV[2])
    return 0
  end
  local record = ARGV[1]
  for _, at in ipairs(redis.call('HVALS', KEYS[3])) do
    if tonumber(at) > tonumber(ARGV[5]) then record = ARGV[4] end
  end
  return keep(record, ARGV[2], ARGV[3])
end

-- KEYS record. ARGV record as it was read, record that takes its place. Answers 0 where somebody else was faster.
function scripts.swapRecord()
  if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
  redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
  return 1
end

-- Starts a move unless one is running. KEYS record, outbox. ARGV record, outbox member. Answers the record that stands.
function scripts.startReembedding()
  local known = redis.call('GET', KEYS[1])
  if known and cjson.decode(known).state == 'running' then return known end
  redis.call('SET', KEYS[1], ARGV[1])
  redis.call('ZADD', KEYS[2], now(), ARGV[2])
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
