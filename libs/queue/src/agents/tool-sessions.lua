-- Makes `owner` the owner of a sandbox. Answers nil, or why it can't be: 'ended' or 'taken'.
local function refusal(sandbox, owner, since, mayBegin)
  local found = redis.call('HMGET', sandbox, 'state', 'toolOwner')
  if found[1] ~= 'open' then return 'ended' end
  if found[2] and found[2] ~= owner or not found[2] and not mayBegin then return 'taken' end
  redis.call('HSETNX', sandbox, 'toolSince', since)
  redis.call('HSET', sandbox, 'toolOwner', owner)
  return nil
end

-- Claims the request id with which a session opens its sandbox. All callers get the same id, and so the same sandbox. A new id
-- replaces it only for a caller that names it as ended. KEYS session. ARGV ended request id or '', new request id, template,
-- ms to keep the session. Answers the current request id, its template, and '1' if the session had a sandbox before.
function scripts.claimToolSandbox()
  local current = redis.call('HGET', KEYS[1], 'sandboxRequest') or ''
  if current == '' or current == ARGV[1] then
    if redis.call('HDEL', KEYS[1], 'sandbox') == 1 then redis.call('HSET', KEYS[1], 'sandboxReplaced', '1') end
    redis.call('HSETNX', KEYS[1], 'createdAt', now())
    redis.call('HSET', KEYS[1], 'sandboxRequest', ARGV[2], 'sandboxTemplate', ARGV[3])
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
  end
  local found = redis.call('HMGET', KEYS[1], 'sandboxRequest', 'sandboxTemplate', 'sandboxReplaced')
  return {found[1], found[2] or ARGV[3], found[3] or ''}
end

-- Drops a claim for which no sandbox was recorded, so that another call may claim. KEYS session. ARGV request id.
function scripts.dropToolSandbox()
  if redis.call('HGET', KEYS[1], 'sandboxRequest') ~= ARGV[1] or redis.call('HEXISTS', KEYS[1], 'sandbox') == 1 then return 0 end
  return redis.call('HDEL', KEYS[1], 'sandboxRequest', 'sandboxTemplate')
end

-- Records the sandbox of a claim.
-- KEYS session, sandbox. ARGV request id, sandbox's id, owner, ms to keep the session. Answers 'kept', 'replaced', 'ended', 'taken'.
function scripts.keepToolSandbox()
  local found = redis.call('HMGET', KEYS[1], 'sandboxRequest', 'createdAt')
  if found[1] ~= ARGV[1] then return 'replaced' end
  local no = refusal(KEYS[2], ARGV[3], found[2], true)
  if no then return no end
  redis.call('HSET', KEYS[1], 'sandbox', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  return 'kept'
end

-- KEYS sandbox. ARGV owner, '1' if a sandbox without an owner may get this one. Answers 'own', 'ended', 'taken'.
function scripts.ownToolSandbox()
  return refusal(KEYS[1], ARGV[1], now(), ARGV[2] == '1') or 'own'
end
