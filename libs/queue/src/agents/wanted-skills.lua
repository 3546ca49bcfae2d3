-- A wish is a request for a skill. This adds a wish to its agent's open wishes ('SADD'), or removes it ('SREM').
local function noteOpen(command)
  local prefix, id = string.match(KEYS[1], '^(.*:)([^:]*)$')
  redis.call(command, string.gsub(prefix, ':wanted%-skill:', ':open-wishes:', 1) .. redis.call('HGET', KEYS[1], 'agent'), id)
end

-- Takes a wish that has ended out of the outbox and its agent's open wishes, and lets its record expire.
local function leave(outbox, member, keptMs)
  redis.call('ZREM', outbox, member)
  noteOpen('SREM')
  redis.call('PEXPIRE', KEYS[1], keptMs)
end

-- Whether this round of the wish is still open. The wish may be gone, over, or in a later round.
local function isOpen(round)
  local found = redis.call('HMGET', KEYS[1], 'state', 'round')
  return (found[1] == 'waiting' or found[1] == 'writing') and found[2] == round
end

-- Asks for a skill. A repeat of an open wish is only counted. A wish that has ended starts its next round, if it has a round left.
-- KEYS record, index, outbox, open wishes of the agent, request or ''. ARGV id, outbox member, digest of the request, wish, priority,
-- ttl ms of the request id, most rounds, agent, most open wishes.
-- Answers {'created'|'known'|'other'|'full', id}. 'other': the request id was used for another wish. 'full': the agent has too many open
-- wishes, and nothing of the request is kept.
function scripts.requestWish()
  local before = once(KEYS[5], ARGV[3], ARGV[1])
  if before then return before end
  local at = now()
  local state = redis.call('HGET', KEYS[1], 'state')
  local prefix = string.gsub(KEYS[1], '[^:]*$', '')
  local isOver = state == 'failed' or state == 'registered' or state == 'withdrawn'
  local mayTry = tonumber(redis.call('HGET', KEYS[1], 'round') or 0) < tonumber(ARGV[7])
  local isNew = not state or (isOver and mayTry)
  if isNew and redis.call('SCARD', KEYS[4]) >= tonumber(ARGV[9]) then
    if KEYS[5] ~= '' then redis.call('DEL', KEYS[5]) end
    return {'full', ARGV[1]}
  end
  if KEYS[5] ~= '' then redis.call('PEXPIRE', KEYS[5], ARGV[6]) end
  redis.call('HINCRBY', KEYS[1], 'asked', 1)
  redis.call('HSET', KEYS[1], 'updatedAt', at)
  redis.call('ZADD', KEYS[2], state and 'NX' or 'CH', at, ARGV[1])
  -- The index doesn't expire, so each request drops a few of the oldest ids whose record is gone.
  for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, 4)) do
    if redis.call('EXISTS', prefix .. id) == 0 then redis.call('ZREM', KEYS[2], id) end
  end
  if not isNew then return {'known', ARGV[1]} end
  redis.call('PERSIST', KEYS[1])
  redis.call('HDEL', KEYS[1], 'draft')
  redis.call('HINCRBY', KEYS[1], 'round', 1)
  redis.call('HSET', KEYS[1], 'wish', ARGV[4], 'agent', ARGV[8], 'state', 'waiting', 'reason', '', 'registered', '', 'priority', ARGV[5])
  redis.call('HSETNX', KEYS[1], 'createdAt', at)
  redis.call('ZADD', KEYS[3], at, ARGV[2])
  redis.call('SADD', KEYS[4], ARGV[1])
  return {'created', ARGV[1]}
end

-- Starts another round of a wish that failed. KEYS record, outbox. ARGV outbox member.
-- Answers 'waiting', or the state that forbids it; 'gone' if there is no wish.
function scripts.reopenWish()
  local state = redis.call('HGET', KEYS[1], 'state')
  if state ~= 'failed' then return state or 'gone' end
  redis.call('PERSIST', KEYS[1])
  redis.call('HDEL', KEYS[1], 'draft')
  redis.call('HINCRBY', KEYS[1], 'round', 1)
  redis.call('HSET', KEYS[1], 'state', 'waiting', 'reason', '', 'updatedAt', now())
  redis.call('ZADD', KEYS[2], now(), ARGV[1])
  noteOpen('SADD')
  return 'waiting'
end

-- Sets fields of an open wish. KEYS record. ARGV round, fields... Answers 0 if the round is over.
function scripts.putWish()
  if not isOpen(ARGV[1]) then return 0 end
  redis.call('HSET', KEYS[1], 'updatedAt', now(), unpack(ARGV, 2))
  return 1
end

-- Keeps a draft unless there is one, so that one round makes one skill.
-- KEYS record. ARGV round, draft. Answers the draft that is kept, or false if the round is over.
function scripts.keepWishDraft()
  if not isOpen(ARGV[1]) then return false end
  redis.call('HSETNX', KEYS[1], 'draft', ARGV[2])
  return redis.call('HGET', KEYS[1], 'draft')
end

-- Withdraws an open wish without a draft. A wish with a draft is about to be registered.
-- KEYS record, outbox. ARGV outbox member, ms to keep the record, reason. Answers the state before: 'waiting' or 'writing'. If the wish
-- can't be withdrawn, changes nothing and answers 'written', 'gone' or the state.
function scripts.withdrawWish()
  local found = redis.call('HMGET', KEYS[1], 'state', 'draft')
  local state = found[1]
  if not state then return 'gone' end
  if state ~= 'waiting' and state ~= 'writing' then return state end
  if found[2] then return 'written' end
  redis.call('HSET', KEYS[1], 'updatedAt', now(), 'state', 'withdrawn', 'reason', ARGV[3])
  leave(KEYS[2], ARGV[1], ARGV[2])
  return state
end

-- Ends a wish. KEYS record, outbox. ARGV round, outbox member, ms to keep the record, fields... Answers 0 if the round is over.
function scripts.endWish()
  if not isOpen(ARGV[1]) then return 0 end
  redis.call('HSET', KEYS[1], 'updatedAt', now(), unpack(ARGV, 4))
  redis.call('HDEL', KEYS[1], 'draft')
  leave(KEYS[2], ARGV[2], ARGV[3])
  return 1
end
