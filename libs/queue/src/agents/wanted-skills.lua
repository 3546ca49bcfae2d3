-- The wish is over: it leaves the outbox and the open wishes of its agent, whose key is made from the record's.
local function leave(outbox, member, keptMs)
  local prefix, id = string.match(KEYS[1], '^(.*:)([^:]*)$')
  redis.call('ZREM', outbox, member)
  redis.call('SREM', string.gsub(prefix, ':wanted%-skill:', ':open-wishes:', 1) .. redis.call('HGET', KEYS[1], 'agent'), id)
  redis.call('PEXPIRE', KEYS[1], keptMs)
end

-- Whether a round of a wish is still to be fulfilled: it may be gone, over, or withdrawn and asked for again meanwhile.
local function isOpen(round)
  local found = redis.call('HMGET', KEYS[1], 'state', 'round')
  return (found[1] == 'waiting' or found[1] == 'writing') and found[2] == round
end

-- Asks for a skill. The same wish again is counted; one that is over is tried again, since whoever asks does not have the skill, in its
-- next round while there may be one. Of an agent only so many are open, each with a job for a model.
-- KEYS record, index, outbox, open wishes of the agent, request. ARGV id, outbox member, digest of the request, wish, priority, ttl ms of the request id, rounds,
-- agent, how many may be open.
-- Answers {'created'|'known'|'other'|'full', id}; 'other' is the same request id for another wish. Nothing of a 'full' request is kept.
function scripts.requestWish()
  local before = once(KEYS[5], ARGV[3], ARGV[1])
  if before then return before end
  local at = now()
  local state = redis.call('HGET', KEYS[1], 'state')
  local prefix = string.gsub(KEYS[1], '[^:]*$', '')
  local isOver = state == 'failed' or state == 'registered' or state == 'withdrawn'
  local rounds = redis.call('HMGET', KEYS[1], 'round', 'unspent')
  local mayTry = tonumber(rounds[1] or 0) - tonumber(rounds[2] or 0) < tonumber(ARGV[7])
  local isNew = not state or (isOver and mayTry)
  if isNew and redis.call('SCARD', KEYS[4]) >= tonumber(ARGV[9]) then
    if KEYS[5] ~= '' then redis.call('DEL', KEYS[5]) end
    return {'full', ARGV[1]}
  end
  if KEYS[5] ~= '' then redis.call('PEXPIRE', KEYS[5], ARGV[6]) end
  redis.call('HINCRBY', KEYS[1], 'asked', 1)
  redis.call('HSET', KEYS[1], 'updatedAt', at)
  redis.call('ZADD', KEYS[2], state and 'NX' or 'CH', at, ARGV[1])
  -- The index has no expiry of its own: each wish drops a few of the oldest ids whose record is gone.
  for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, 4)) do
    if redis.call('EXISTS', prefix .. id) == 0 then redis.call('ZREM', KEYS[2], id) end
  end
  if not isNew then
    if tonumber(ARGV[5]) > tonumber(redis.call('HGET', KEYS[1], 'priority')) then redis.call('HSET', KEYS[1], 'priority', ARGV[5]) end
    return {'known', ARGV[1]}
  end
  redis.call('PERSIST', KEYS[1])
  redis.call('HDEL', KEYS[1], 'draft')
  redis.call('HINCRBY', KEYS[1], 'round', 1)
  redis.call('HSET', KEYS[1], 'wish', ARGV[4], 'agent', ARGV[8], 'state', 'waiting', 'reason', '', 'registered', '', 'priority', ARGV[5])
  redis.call('HSETNX', KEYS[1], 'createdAt', at)
  redis.call('ZADD', KEYS[3], at, ARGV[2])
  redis.call('SADD', KEYS[4], ARGV[1])
  return {'created', ARGV[1]}
end

-- Who holds the wish's job says how far it is. KEYS record. ARGV round, fields... Answers 0 where the round is over.
function scripts.putWish()
  if not isOpen(ARGV[1]) then return 0 end
  redis.call('HSET', KEYS[1], 'updatedAt', now(), unpack(ARGV, 2))
  return 1
end

-- What was written for it; the first stays, so that one wish makes one skill. KEYS record. ARGV round, draft. Answers the draft, or false where the round is over.
function scripts.keepWishDraft()
  if not isOpen(ARGV[1]) then return false end
  redis.call('HSETNX', KEYS[1], 'draft', ARGV[2])
  return redis.call('HGET', KEYS[1], 'draft')
end

-- Takes a wish back that was not written yet: with its draft it is about to be registered. KEYS record, outbox. ARGV outbox member, ms to
-- keep it, reason. Answers what it was: 'waiting' or 'writing' where it is withdrawn now; 'written' or its state where nothing changed;
-- 'gone'. One that no model was asked for costs no round.
function scripts.withdrawWish()
  local found = redis.call('HMGET', KEYS[1], 'state', 'draft')
  local state = found[1]
  if not state then return 'gone' end
  if state ~= 'waiting' and state ~= 'writing' then return state end
  if found[2] then return 'written' end
  redis.call('HSET', KEYS[1], 'updatedAt', now(), 'state', 'withdrawn', 'reason', ARGV[3])
  if state == 'waiting' then redis.call('HINCRBY', KEYS[1], 'unspent', 1) end
  leave(KEYS[2], ARGV[1], ARGV[2])
  return state
end

-- The end of a wish. KEYS record, outbox. ARGV round, outbox member, ms to keep it, fields... Answers 0 where the round is over.
function scripts.endWish()
  if not isOpen(ARGV[1]) then return 0 end
  redis.call('HSET', KEYS[1], 'updatedAt', now(), unpack(ARGV, 4))
  redis.call('HDEL', KEYS[1], 'draft')
  leave(KEYS[2], ARGV[2], ARGV[3])
  return 1
end
