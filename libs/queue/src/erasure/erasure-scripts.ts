import { PRELUDE } from '../redis/script-parts.js';

/**
 * KEYS marks of the tenant. ARGV whose, from when on their data is new (ms since 1970) or '' for now. Answers that time. A mark that is
 * there is never put back.
 */
const markErased = `${PRELUDE}
-- What is made in this very millisecond is before it.
local at = ARGV[2] ~= '' and tonumber(ARGV[2]) or now() + 1
local known = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
if at > known then redis.call('HSET', KEYS[1], ARGV[1], string.format('%d', at)) end
return string.format('%d', at)
`;

/**
 * Removes a task with all that hangs on it; who still runs it is fenced, since there is no task. KEYS as of every script that may end a
 * task. ARGV outbox member, wake, task id. Answers whether it was there.
 */
const eraseTask = `
local there = redis.call('EXISTS', KEYS[1])
local request = redis.call('HGET', KEYS[1], 'requestKey')
if request and request ~= '' then redis.call('DEL', request) end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
redis.call('ZREM', KEYS[5], ARGV[1])
redis.call('ZREM', KEYS[6], ARGV[3])
redis.call('PUBLISH', ARGV[2], '')
return there
`;

/**
 * Keeps a consolidation's record, unless whose it is was erased since it began. KEYS record, marks of the tenant.
 * ARGV record, the same without what it quotes, createdAt, field of the agent's mark or '', ms to keep it or 0.
 */
const putConsolidation = `
local function after(field) return tonumber(redis.call('HGET', KEYS[2], field) or 0) > tonumber(ARGV[3]) end
if after('tenant') or (ARGV[4] ~= '' and after(ARGV[4])) then return 0 end
local record = ARGV[1]
for _, at in ipairs(redis.call('HVALS', KEYS[2])) do
  if tonumber(at) > tonumber(ARGV[3]) then record = ARGV[2] end
end
if ARGV[5] == '0' then redis.call('SET', KEYS[1], record) else redis.call('SET', KEYS[1], record, 'PX', ARGV[5]) end
return 1
`;

/** KEYS record. ARGV record as it was read, record that takes its place. Answers 0 where somebody else was faster. */
const swapRecord = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return 1
`;

export const ERASURE_SCRIPTS = {
  markErased: { numberOfKeys: 1, lua: markErased },
  eraseTask: { numberOfKeys: 6, lua: eraseTask },
  putConsolidation: { numberOfKeys: 2, lua: putConsolidation },
  swapRecord: { numberOfKeys: 1, lua: swapRecord },
};
