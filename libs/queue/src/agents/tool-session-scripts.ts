import { PRELUDE } from '../redis/script-parts.js';

/** nil where the sandbox is the owner's or now becomes so; otherwise why not: 'ended' or 'taken'. */
const OWN = `
local function refusal(sandbox, owner, since, mayBegin)
  local found = redis.call('HMGET', sandbox, 'state', 'toolOwner')
  if found[1] ~= 'open' then return 'ended' end
  if found[2] and found[2] ~= owner or not found[2] and not mayBegin then return 'taken' end
  redis.call('HSETNX', sandbox, 'toolSince', since)
  redis.call('HSET', sandbox, 'toolOwner', owner)
  return nil
end
`;

/**
 * By which request id a session opens its sandbox: whoever asks with the same one gets the same sandbox. Another takes its place only
 * for who saw the sandbox of that one ended. KEYS session. ARGV the one that is over (empty: none), another, template, ms to keep the
 * session. Answers the one that counts, its template, and '1' where there was a sandbox before.
 */
const claimToolSandbox = `${PRELUDE}
local current = redis.call('HGET', KEYS[1], 'sandboxRequest') or ''
if current == '' or current == ARGV[1] then
  if redis.call('HDEL', KEYS[1], 'sandbox') == 1 then redis.call('HSET', KEYS[1], 'sandboxReplaced', '1') end
  redis.call('HSETNX', KEYS[1], 'createdAt', now())
  redis.call('HSET', KEYS[1], 'sandboxRequest', ARGV[2], 'sandboxTemplate', ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
local found = redis.call('HMGET', KEYS[1], 'sandboxRequest', 'sandboxTemplate', 'sandboxReplaced')
return {found[1], found[2] or ARGV[3], found[3] or ''}
`;

/** KEYS session. ARGV request id. Another call may claim anew where no sandbox came of this one. */
const dropToolSandbox = `
if redis.call('HGET', KEYS[1], 'sandboxRequest') ~= ARGV[1] or redis.call('HEXISTS', KEYS[1], 'sandbox') == 1 then return 0 end
return redis.call('HDEL', KEYS[1], 'sandboxRequest', 'sandboxTemplate')
`;

/** KEYS session, sandbox. ARGV request id, sandbox's id, owner, ms to keep the session. Answers 'kept', 'replaced', 'ended', 'taken'. */
const keepToolSandbox = `${OWN}
local found = redis.call('HMGET', KEYS[1], 'sandboxRequest', 'createdAt')
if found[1] ~= ARGV[1] then return 'replaced' end
local no = refusal(KEYS[2], ARGV[3], found[2], true)
if no then return no end
redis.call('HSET', KEYS[1], 'sandbox', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 'kept'
`;

/** KEYS sandbox. ARGV owner, '1' where it may be nobody's yet. Answers 'own', 'ended', 'taken'. */
const ownToolSandbox = `${PRELUDE}${OWN}
return refusal(KEYS[1], ARGV[1], now(), ARGV[2] == '1') or 'own'
`;

export const TOOL_SESSION_SCRIPTS = {
  claimToolSandbox: { numberOfKeys: 1, lua: claimToolSandbox },
  dropToolSandbox: { numberOfKeys: 1, lua: dropToolSandbox },
  keepToolSandbox: { numberOfKeys: 2, lua: keepToolSandbox },
  ownToolSandbox: { numberOfKeys: 1, lua: ownToolSandbox },
};
