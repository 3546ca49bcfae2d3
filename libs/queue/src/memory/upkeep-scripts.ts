import { ONCE, PRELUDE } from '../redis/script-parts.js';

/** KEYS record, request, outbox. ARGV id, digest, record, ttl ms of the request id, outbox member. Answers {'created'|'known'|'other', id}. */
const createErasure = `${PRELUDE}${ONCE}
local before = once(KEYS[2], ARGV[2], ARGV[1])
if before then return before end
if KEYS[2] ~= '' then redis.call('PEXPIRE', KEYS[2], ARGV[4]) end
redis.call('SET', KEYS[1], ARGV[3])
redis.call('ZADD', KEYS[3], now(), ARGV[5])
return {'created', ARGV[1]}
`;

/** An erasure that goes on, also one that had failed. KEYS record, outbox. ARGV record, outbox member. */
const keepErasure = `${PRELUDE}
redis.call('SET', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], 'NX', now(), ARGV[2])
return 1
`;

/** The end of an erasure. KEYS record, outbox. ARGV record, ttl ms, outbox member. */
const endErasure = `
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[3])
return 1
`;

/** KEYS record. ARGV record. Starts unless one is running; answers the record that stands. */
const startReembedding = `
local known = redis.call('GET', KEYS[1])
if known and cjson.decode(known).state == 'running' then return known end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
`;

/** KEYS record. Answers the record that stands, or false. */
const stopReembedding = `
local known = redis.call('GET', KEYS[1])
if not known then return false end
local record = cjson.decode(known)
if record.state ~= 'running' then return known end
-- Only this value is changed: a decoded null or number would not be written back as it was.
local stopped = string.gsub(known, '"state":"running"', '"state":"stopped"', 1)
redis.call('SET', KEYS[1], stopped)
return stopped
`;

/** KEYS record. ARGV id, record. Only the one that is running is changed; answers 1, or 0 where it was stopped or another one runs. */
const putReembedding = `
local known = redis.call('GET', KEYS[1])
if not known then return 0 end
local record = cjson.decode(known)
if record.id ~= ARGV[1] or record.state ~= 'running' then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
`;

export const UPKEEP_SCRIPTS = {
  createErasure: { numberOfKeys: 3, lua: createErasure },
  keepErasure: { numberOfKeys: 2, lua: keepErasure },
  endErasure: { numberOfKeys: 2, lua: endErasure },
  startReembedding: { numberOfKeys: 1, lua: startReembedding },
  stopReembedding: { numberOfKeys: 1, lua: stopReembedding },
  putReembedding: { numberOfKeys: 1, lua: putReembedding },
};
