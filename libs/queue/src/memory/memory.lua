-- Stores a write unless there is one under its id. KEYS writes of the tenant, outbox, marks of erasures.
-- ARGV write id, outbox member, write, when it was made, fields of the marks that cover its owner...
-- Answers 1, 0 if the id was known, or -1 if the owner was erased after the write was made.
function scripts.putMemoryWrite()
  for _, at in ipairs(redis.call('HMGET', KEYS[3], unpack(ARGV, 5))) do
    if at and tonumber(at) > tonumber(ARGV[4]) then return -1 end
  end
  local created = redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[3])
  redis.call('ZADD', KEYS[2], 'NX', now(), ARGV[2])
  return created
end

-- KEYS writes of the tenant, outbox. ARGV write id, outbox member.
function scripts.removeMemoryWrite()
  redis.call('ZREM', KEYS[2], ARGV[2])
  return redis.call('HDEL', KEYS[1], ARGV[1])
end

-- Stores a record. keptMs '0': the record has not ended, and is in the outbox. Otherwise it leaves the outbox and expires.
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

-- KEYS record, outbox. ARGV record, outbox member, ms to keep the record, or 0 until it has ended.
function scripts.putRecord()
  return keep(ARGV[1], ARGV[2], ARGV[3])
end

-- Whether an erasure was marked after a run began. Then the run may quote erased data.
local function mayQuoteErased(marks, createdAt)
  for _, at in ipairs(redis.call('HVALS', marks)) do
    if tonumber(at) > tonumber(createdAt) then return true end
  end
  return false
end

-- Stores a consolidation run, or removes it if it began before an erasure. The model's answers are removed once the run is done.
-- KEYS record, outbox, lines, answers, marks of erasures, the tenant's runs.
-- ARGV record, outbox member, ms to keep the record or 0, createdAt, 1 if it is done, member among the tenant's runs.
function scripts.putConsolidation()
  if mayQuoteErased(KEYS[5], ARGV[4]) then
    redis.call('DEL', KEYS[1], KEYS[3], KEYS[4])
    redis.call('ZREM', KEYS[2], ARGV[2])
    redis.call('ZREM', KEYS[6], ARGV[6])
    return 0
  end
  redis.call('ZADD', KEYS[6], 0, ARGV[6])
  if ARGV[5] == '1' then redis.call('DEL', KEYS[4]) end
  return keep(ARGV[1], ARGV[2], ARGV[3])
end

-- Stores a line or an answer of a consolidation run. KEYS hash, marks of erasures. ARGV field, value, createdAt, ms to keep it.
function scripts.putConsolidationPart()
  if mayQuoteErased(KEYS[2], ARGV[3]) then return 0 end
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  return redis.call('PEXPIRE', KEYS[1], ARGV[4])
end

-- Starts a move to another embedding model unless a move runs. KEYS record, outbox. ARGV record, outbox member. Answers the record of the move
-- that runs.
function scripts.startReembedding()
  local known = redis.call('GET', KEYS[1])
  if known and cjson.decode(known).state == 'running' then return known end
  redis.call('SET', KEYS[1], ARGV[1])
  redis.call('ZADD', KEYS[2], now(), ARGV[2])
  return ARGV[1]
end

-- Stores progress of a running move. KEYS record. ARGV id, record. Answers 1, or 0 if the move was stopped or another move runs.
function scripts.putReembedding()
  local known = redis.call('GET', KEYS[1])
  if not known then return 0 end
  local record = cjson.decode(known)
  if record.id ~= ARGV[1] or record.state ~= 'running' then return 0 end
  redis.call('SET', KEYS[1], ARGV[2])
  return 1
end

-- Notes how many facts there are. Removed facts stay in the count of facts ever seen. KEYS settling. ARGV number of facts, day.
-- Answers the facts ever seen, calls, calls of this day, prompt tokens.
function scripts.readSettling()
  local last, day = unpack(redis.call('HMGET', KEYS[1], 'last', 'day'))
  if day ~= ARGV[2] then redis.call('HSET', KEYS[1], 'day', ARGV[2], 'dayCalls', 0) end
  local facts = redis.call('HINCRBY', KEYS[1], 'facts', math.max(0, ARGV[1] - (last or 0)))
  redis.call('HSET', KEYS[1], 'last', ARGV[1])
  local spent = redis.call('HMGET', KEYS[1], 'calls', 'dayCalls', 'promptTokens')
  return {facts, tonumber(spent[1] or 0), tonumber(spent[2] or 0), tonumber(spent[3] or 0)}
end

-- Counts one model call and extends the lease. KEYS settling, lease. ARGV prompt tokens, ms.
function scripts.chargeSettling()
  redis.call('HINCRBY', KEYS[1], 'calls', 1)
  redis.call('HINCRBY', KEYS[1], 'dayCalls', 1)
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
  return redis.call('HINCRBY', KEYS[1], 'promptTokens', ARGV[1])
end

-- Releases the lease, and stores why the work failed, unless another holder has the lease. KEYS settling, lease. ARGV holder, failure or ''.
function scripts.endSettling()
  local held = redis.call('GET', KEYS[2])
  if held and held ~= ARGV[1] then return 0 end
  redis.call('DEL', KEYS[2])
  if ARGV[2] == '' then return redis.call('HDEL', KEYS[1], 'failure') end
  return redis.call('HSET', KEYS[1], 'failure', ARGV[2])
end
