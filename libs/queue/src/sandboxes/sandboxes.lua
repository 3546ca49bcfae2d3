-- The first KEYS of every script about one session.
local SANDBOX, INDEX, OPEN = KEYS[1], KEYS[2], KEYS[3]

-- Answers nil if a caller with this epoch may change the session; otherwise 'gone', 'fenced', or the state in which the session ended.
local function refusal(epoch)
  local found = redis.call('HMGET', SANDBOX, 'state', 'ownerEpoch')
  if not found[1] then return 'gone' end
  if found[1] ~= 'open' then return found[1] end
  if found[2] ~= epoch then return 'fenced' end
  return nil
end

-- Records a session whose sandbox is claimed. KEYS session, index, open sessions, sessions of the controller, request, the line of tasks, in
-- which the tenant is listed.
-- ARGV id, member, digest, ttl ms, most open sessions (empty: this session doesn't count), fields...
-- Answers {'created'|'known'|'other', id}, or {'full', number of open sessions}. 'other': the request id was used with another digest.
function scripts.openSandbox()
  local known = KEYS[5] ~= '' and redis.call('GET', KEYS[5])
  local isCounted = ARGV[5] ~= ''
  if isCounted and not known and redis.call('SCARD', OPEN) >= tonumber(ARGV[5]) then return {'full', tostring(redis.call('SCARD', OPEN))} end
  local before = once(KEYS[5], ARGV[3], ARGV[1])
  if before then return before end
  local at = now()
  local expires = string.format('%d', at + ARGV[4])
  redis.call('HSET', SANDBOX, 'state', 'open', 'ownerEpoch', 1, 'createdAt', at, 'expiresAt', expires, 'requestKey', KEYS[5], unpack(ARGV, 6))
  redis.call('ZADD', INDEX, 0, ARGV[1])
  if isCounted then redis.call('SADD', OPEN, ARGV[1]) end
  redis.call('SADD', KEYS[4], ARGV[2])
  redis.call('HSETNX', KEYS[6], string.match(OPEN, '[^:]*$'), 0)
  -- The index doesn't expire, so each new session drops a few of the oldest ids whose record is gone.
  local prefix = string.gsub(SANDBOX, '[^:]*$', '')
  for _, id in ipairs(redis.call('ZRANGE', INDEX, 0, 4)) do
    if redis.call('EXISTS', prefix .. id) == 0 then redis.call('ZREM', INDEX, id) end
  end
  return {'created', ARGV[1]}
end

-- ARGV owner epoch, ttl ms. Answers 'renewed', 'gone', 'fenced', or the state in which the session ended.
function scripts.renewSandbox()
  local no = refusal(ARGV[1])
  if no then return no end
  redis.call('HSET', SANDBOX, 'expiresAt', string.format('%d', now() + ARGV[2]))
  return 'renewed'
end

-- Ends a session. ARGV member, id, owner epoch, state, reason, ms to keep the record, key prefix of the controllers' sets of sessions.
-- Answers 'ended', 'gone', 'fenced', or the state in which the session ended before.
function scripts.endSandbox()
  local no = refusal(ARGV[3])
  if no then return no end
  local found = redis.call('HMGET', SANDBOX, 'requestKey', 'controllerId')
  redis.call('HSET', SANDBOX, 'state', ARGV[4], 'stateReason', ARGV[5], 'endedAt', now())
  redis.call('SREM', OPEN, ARGV[2])
  redis.call('SREM', ARGV[7] .. found[2], ARGV[1])
  redis.call('PEXPIRE', SANDBOX, ARGV[6])
  if found[1] ~= '' then redis.call('PEXPIRE', found[1], ARGV[6]) end
  return 'ended'
end

-- Gives a session to another controller. ARGV member, expected epoch, new controller, key prefix of the controllers' sets of sessions.
-- Answers {'taken', new epoch, ms until it expires}, or {'gone'|'fenced'|state}.
function scripts.takeOverSandbox()
  local no = refusal(ARGV[2])
  if no then return {no} end
  local found = redis.call('HMGET', SANDBOX, 'controllerId', 'expiresAt')
  redis.call('SREM', ARGV[4] .. found[1], ARGV[1])
  redis.call('SADD', ARGV[4] .. ARGV[3], ARGV[1])
  redis.call('HSET', SANDBOX, 'controllerId', ARGV[3])
  local epoch = redis.call('HINCRBY', SANDBOX, 'ownerEpoch', 1)
  return {'taken', tostring(epoch), string.format('%d', math.max(0, found[2] - now()))}
end

-- KEYS controllers, heartbeats. ARGV id, announcement.
function scripts.announceController()
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  redis.call('ZADD', KEYS[2], now(), ARGV[1])
  return 1
end

-- KEYS controllers, heartbeats. ARGV ms without a heartbeat after which a controller is dead. Answers the live controllers' announcements.
function scripts.liveControllers()
  local ids = redis.call('ZRANGEBYSCORE', KEYS[2], string.format('(%d', now() - ARGV[1]), '+inf')
  if #ids == 0 then return {} end
  return redis.call('HMGET', KEYS[1], unpack(ids))
end

-- Answers ids and last heartbeats of dead controllers: {id, ms, id, ms, ...}. KEYS and ARGV: those of `liveControllers`.
function scripts.deadControllers()
  return redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%d', now() - ARGV[1]), 'WITHSCORES')
end

-- Removes a dead controller unless it came back or holds sessions. KEYS controllers, heartbeats, its sessions. ARGV id, ms without heartbeat.
function scripts.forgetController()
  local seen = redis.call('ZSCORE', KEYS[2], ARGV[1])
  if not seen or tonumber(seen) > now() - ARGV[2] or redis.call('SCARD', KEYS[3]) > 0 then return 0 end
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
  return 1
end
