import { PRELUDE } from './script-parts.js';

/**
 * By which request id a session opens its sandbox: whoever asks with the same one gets the same sandbox. Another takes its place only
 * for who saw the last. KEYS session. ARGV the last (empty: none), another, ms to keep the session. Answers the one that counts.
 */
const claimToolSandbox = `${PRELUDE}
local last = redis.call('HGET', KEYS[1], 'sandboxRequest') or ''
if last ~= ARGV[1] then return last end
redis.call('HSETNX', KEYS[1], 'createdAt', now())
redis.call('HSET', KEYS[1], 'sandboxRequest', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return ARGV[2]
`;

export const TOOL_SESSION_SCRIPTS = {
  claimToolSandbox: { numberOfKeys: 1, lua: claimToolSandbox },
};
