-- Makes `owner` the owner of an open sandbox that has no other owner. Answers nil, or 'ended' or 'taken' if nothing was changed.
local function refusal(sandbox, owner, mayBegin)
  local found = redis.call('HMGET', sandbox, 'state', 'toolOwner')
  if found[1] ~= 'open' then return 'ended' end
  if found[2] and found[2] ~= owner or not found[2] and not mayBegin then return 'taken' end
  redis.call('HSETNX', sandbox, 'toolSince', now())
  redis.call('HSET', sandbox, 'toolOwner', owner)
  return nil
end

-- Records the sandbox that a tool session opened, unless another call has recorded a different one meanwhile.
-- KEYS session, sandbox. ARGV id of the sandbox that was recorded before or '', sandbox's id, owner, ms to keep the session.
-- Answers 'kept', 'replaced', 'ended', 'taken'.
function scripts.keepToolSandbox()
  local current = redis.call('HGET', KEYS[1], 'sandbox') or ''
  if current ~= ARGV[1] and current ~= ARGV[2] then return 'replaced' end
  local no = refusal(KEYS[2], ARGV[3], true)
  if no then return no end
  redis.call('HSETNX', KEYS[1], 'createdAt', now())
  redis.call('HSET', KEYS[1], 'sandbox', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  return 'kept'
end

-- KEYS sandbox. ARGV owner, '1' if a sandbox without an owner may get this owner. Answers 'own', 'ended', 'taken'.
function scripts.ownToolSandbox()
  return refusal(KEYS[1], ARGV[1], ARGV[2] == '1') or 'own'
end
