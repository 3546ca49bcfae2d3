import { AGENT_SETTINGS_SCRIPTS } from '../agents/agent-settings-scripts.js';
import { ERASURE_SCRIPTS } from '../erasure/erasure-scripts.js';
import { SANDBOX_SCRIPTS } from '../sandboxes/sandbox-scripts.js';
import { ONCE, PRELUDE } from './script-parts.js';
import { TOOL_SESSION_SCRIPTS } from '../agents/tool-session-scripts.js';
import { UPKEEP_SCRIPTS } from '../memory/upkeep-scripts.js';
import { WANTED_SKILL_SCRIPTS } from '../agents/wanted-skill-scripts.js';

/**
 * Everything here that must be atomic, as Lua: one script is one round trip, one fsync, all or nothing.
 * Time is Redis's own, so that several hosts share one clock. Keys made inside a script start with the
 * prefix of the keys passed in; a Redis Cluster therefore needs a hash-tagged prefix.
 */

/** KEYS of every script that may end a task, in this order. */
const TASK_KEYS = `
local TASK, ROLLOUT, JOURNAL, EVENTS, OUTBOX, INDEX = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
`;

const FINALS = `
local function isFinal(state) return state == 'succeeded' or state == 'failed' or state == 'cancelled' end
-- Ends the task: its fields, its last events, and from now on everything of it expires after the retention.
local function finalise(fields, events, retentionMs, wake)
  redis.call('HSET', TASK, 'endedAt', now(), 'updatedAt', now(), unpack(fields))
  redis.call('HINCRBY', TASK, 'revision', 1)
  for _, event in ipairs(events) do emit(EVENTS, event) end
  redis.call('HSET', TASK, 'finishedEvent', emit(EVENTS, '{"type":"finished"}'))
  for _, key in ipairs({TASK, ROLLOUT, JOURNAL, EVENTS}) do redis.call('PEXPIRE', key, retentionMs) end
  local request = redis.call('HGET', TASK, 'requestKey')
  if request and request ~= '' then redis.call('PEXPIRE', request, retentionMs) end
  -- The index has no expiry of its own: each end drops a few of the oldest ids whose task is gone.
  local prefix = string.gsub(TASK, '[^:]*$', '')
  for _, id in ipairs(redis.call('ZRANGE', INDEX, 0, 4)) do
    if redis.call('EXISTS', prefix .. id) == 0 then redis.call('ZREM', INDEX, id) end
  end
  redis.call('PUBLISH', wake, '')
end
`;

/** Accepts a task. KEYS task, index, outbox, events, request. ARGV id, outbox member, digest, wake, first event, fields... */
const submitTask = `${PRELUDE}${ONCE}
local before = once(KEYS[5], ARGV[3], ARGV[1])
if before then return before end
local at = now()
redis.call('HSET', KEYS[1], 'createdAt', at, 'updatedAt', at, unpack(ARGV, 6))
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('ZADD', KEYS[3], at, ARGV[2])
emit(KEYS[4], ARGV[5])
redis.call('PUBLISH', ARGV[4], '')
return {'created', ARGV[1]}
`;

/**
 * Takes the rollout for a worker: a new epoch, with which every earlier one is fenced. ARGV outbox member, wake.
 * Answers {'gone'}, {'final', state} or {'open', generation, epoch, startedAt, cancelRequested, journal as a flat list}.
 */
const openRollout = `${PRELUDE}${TASK_KEYS}${FINALS}
redis.call('ZREM', OUTBOX, ARGV[1])
local state = redis.call('HGET', TASK, 'state')
if not state then return {'gone'} end
if isFinal(state) then return {'final', state} end
redis.call('HSETNX', ROLLOUT, 'generation', 0)
redis.call('HSETNX', ROLLOUT, 'startedAt', now())
local epoch = redis.call('HINCRBY', ROLLOUT, 'epoch', 1)
if state ~= 'running' then emit(EVENTS, '{"type":"state","state":"running"}') end
if epoch > 1 then emit(EVENTS, '{"type":"worker","epoch":' .. epoch .. '}') end
redis.call('HSET', TASK, 'state', 'running', 'updatedAt', now())
redis.call('HINCRBY', TASK, 'revision', 1)
redis.call('PUBLISH', ARGV[2], '')
return {'open', redis.call('HGET', ROLLOUT, 'generation'), tostring(epoch), redis.call('HGET', ROLLOUT, 'startedAt'),
  redis.call('HGET', TASK, 'cancelRequested') or '0', redis.call('HGETALL', JOURNAL)}
`;

/** Whether the caller's generation and epoch are still the rollout's. */
const HELD = `
local function held(generation, epoch)
  local holder = redis.call('HMGET', ROLLOUT, 'generation', 'epoch')
  return holder[1] == generation and holder[2] == epoch
end
`;

/**
 * One journaled step. ARGV generation, epoch, wake, step key, entry, usage, events...
 * The first entry under a key stays; a repeat changes nothing. Answers -1 when fenced, else 1 if a cancel was asked for, 0 if not.
 */
const appendEntry = `${PRELUDE}${TASK_KEYS}${HELD}
local task = redis.call('HMGET', TASK, 'state', 'cancelRequested')
if task[1] ~= 'running' or not held(ARGV[1], ARGV[2]) then return -1 end
-- A hash keeps no order, so each entry starts with its place.
if redis.call('HSETNX', JOURNAL, ARGV[4], redis.call('HLEN', JOURNAL) .. ' ' .. ARGV[5]) == 1 then
  for i = 7, #ARGV do emit(EVENTS, ARGV[i]) end
  redis.call('HSET', TASK, 'usage', ARGV[6], 'updatedAt', now())
  redis.call('HINCRBY', TASK, 'revision', 1)
  redis.call('PUBLISH', ARGV[3], '')
end
return task[2] == '1' and 1 or 0
`;

/**
 * The last write of a rollout. ARGV generation, epoch, wake, retention ms, number of fields, fields..., events...
 * Answers -1 when fenced; 0 when this holder had finished it before; 1 when it did now.
 */
const finishRollout = `${PRELUDE}${TASK_KEYS}${FINALS}${HELD}
if not held(ARGV[1], ARGV[2]) then return -1 end
local state = redis.call('HGET', TASK, 'state')
if not state then return -1 end
if isFinal(state) then return 0 end
local count = tonumber(ARGV[5])
finalise({unpack(ARGV, 6, 5 + count)}, {unpack(ARGV, 6 + count)}, ARGV[4], ARGV[3])
return 1
`;

/**
 * The system gave up on a task: its job is dead. Fences whoever might still run it. ARGV outbox member, wake, retention ms,
 * when the job died, error. Answers 'failed', 'gone', 'final', or 'requeued' when it was redriven after that death.
 */
const failTask = `${PRELUDE}${TASK_KEYS}${FINALS}
local task = redis.call('HMGET', TASK, 'state', 'requeuedAt')
local requeuedAt = tonumber(task[2] or '') or 0
if task[1] and not isFinal(task[1]) and requeuedAt > tonumber(ARGV[4]) then return 'requeued' end
redis.call('ZREM', OUTBOX, ARGV[1])
if not task[1] then return 'gone' end
if isFinal(task[1]) then return 'final' end
redis.call('HINCRBY', ROLLOUT, 'generation', 1)
finalise({'state', 'failed', 'stopReason', 'error', 'error', ARGV[5]}, {'{"type":"state","state":"failed"}'}, ARGV[3], ARGV[2])
return 'failed'
`;

/**
 * Puts a task that the system gave up on back in line, with a fresh count of takeovers and a fresh wall clock; its journal
 * stays. ARGV outbox member, wake, task id. Answers 'queued', 'gone', or the state that forbids it.
 */
const requeueTask = `${PRELUDE}${TASK_KEYS}${FINALS}
local task = redis.call('HMGET', TASK, 'state', 'stopReason', 'finishedEvent', 'requestKey')
if not task[1] then return 'gone' end
if isFinal(task[1]) and not (task[1] == 'failed' and task[2] == 'error') then return task[1] end
for _, key in ipairs({TASK, ROLLOUT, JOURNAL, EVENTS}) do redis.call('PERSIST', key) end
if task[4] and task[4] ~= '' then redis.call('PERSIST', task[4]) end
redis.call('HINCRBY', ROLLOUT, 'generation', 1)
redis.call('HDEL', ROLLOUT, 'epoch', 'startedAt')
redis.call('HSET', TASK, 'state', 'queued', 'requeuedAt', now(), 'updatedAt', now())
redis.call('HDEL', TASK, 'stopReason', 'error', 'endedAt', 'finishedEvent')
redis.call('HINCRBY', TASK, 'revision', 1)
-- A watch that starts from the beginning must not end at the end of the first run.
if task[3] then redis.call('XDEL', EVENTS, task[3]) end
emit(EVENTS, '{"type":"state","state":"queued"}')
redis.call('ZADD', INDEX, 0, ARGV[3])
redis.call('ZADD', OUTBOX, now(), ARGV[1])
redis.call('PUBLISH', ARGV[2], '')
return 'queued'
`;

/**
 * Asks to cancel. A task that no worker has taken ends at once. ARGV outbox member, wake, retention ms, cancel channel, message.
 * Answers 'gone', 'final', 'cancelled' or 'requested'.
 */
const cancelTask = `${PRELUDE}${TASK_KEYS}${FINALS}
local state = redis.call('HGET', TASK, 'state')
if not state then return 'gone' end
if isFinal(state) then return 'final' end
redis.call('HSET', TASK, 'cancelRequested', 1, 'updatedAt', now())
if state == 'queued' then
  redis.call('ZREM', OUTBOX, ARGV[1])
  redis.call('HINCRBY', ROLLOUT, 'generation', 1)
  finalise({'state', 'cancelled', 'stopReason', 'cancelled'}, {'{"type":"state","state":"cancelled"}'}, ARGV[3], ARGV[2])
  return 'cancelled'
end
redis.call('HINCRBY', TASK, 'revision', 1)
redis.call('PUBLISH', ARGV[4], ARGV[5])
return 'requested'
`;

/**
 * KEYS writes of the tenant, index, marks of erasures. ARGV write id, index member, write, when it was made, marks that speak of its
 * owner... The first write under an id stays. Answers -1 for one whose owner was erased since it was made.
 */
const putMemoryWrite = `${PRELUDE}
for _, at in ipairs(redis.call('HMGET', KEYS[3], unpack(ARGV, 5))) do
  if at and tonumber(at) > tonumber(ARGV[4]) then return -1 end
end
local created = redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[3])
redis.call('ZADD', KEYS[2], 'NX', now(), ARGV[2])
return created
`;

/** KEYS as above. ARGV write id, index member. */
const removeMemoryWrite = `
redis.call('ZREM', KEYS[2], ARGV[2])
return redis.call('HDEL', KEYS[1], ARGV[1])
`;

/**
 * KEYS execution, the task that it is for or '', marks of erasures, the job that runs it. ARGV request, ttl ms, channel of who waits or ''.
 * The first request stays; everybody who waits is told. Answers {the result if there is one that is the code's own, else '', 1 where that
 * job was there before}: a result that the infrastructure spoilt makes way for another try. {'gone'} where the task may have been erased.
 */
const prepareExecution = `
if KEYS[2] ~= '' and redis.call('EXISTS', KEYS[2]) == 0 and redis.call('EXISTS', KEYS[3]) == 1 then return {'gone'} end
redis.call('HSETNX', KEYS[1], 'request', ARGV[1])
local found = redis.call('HMGET', KEYS[1], 'result', 'spoilt', 'waiters')
if found[1] and not found[2] then return {found[1], 1} end
redis.call('HDEL', KEYS[1], 'cancelRequested', 'result', 'spoilt')
local waiters = found[3] or ''
if ARGV[3] ~= '' and not string.find(waiters, ARGV[3], 1, true) then redis.call('HSET', KEYS[1], 'waiters', waiters .. ARGV[3] .. ' ') end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'', redis.call('EXISTS', KEYS[4])}
`;

/** Says a message to everybody who waits for an execution. */
const TELL_WAITERS = `
local function tell(waiters, message)
  for channel in string.gmatch(waiters or '', '%S+') do redis.call('PUBLISH', channel, message) end
end
`;

/**
 * KEYS execution. ARGV result, ttl ms, whether the infrastructure spoilt it (1 or 0), name for those who wait, bytes of a result that is
 * handed to them. The first result stays; of what is gone, none.
 */
const saveExecution = `${TELL_WAITERS}
local found = redis.call('HMGET', KEYS[1], 'request', 'waiters')
if not found[1] then return 0 end
local saved = redis.call('HSETNX', KEYS[1], 'result', ARGV[1])
if saved == 1 and ARGV[3] == '1' then redis.call('HSET', KEYS[1], 'spoilt', 1) end
redis.call('HDEL', KEYS[1], 'waiters')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local handed = saved == 1 and #ARGV[1] <= tonumber(ARGV[5])
tell(found[2], handed and ARGV[4] .. '\\n' .. ARGV[1] or ARGV[4])
return saved
`;

/** KEYS execution. ARGV name for those who wait: they are told that it ended, or was stopped, without a result. */
const endExecution = `${TELL_WAITERS}
tell(redis.call('HGET', KEYS[1], 'waiters'), ARGV[1])
return 1
`;

/** KEYS execution. ARGV channel, message. Answers 0 when there is nothing left to cancel. */
const cancelExecution = `
local execution = redis.call('HMGET', KEYS[1], 'request', 'result')
if not execution[1] or execution[2] then return 0 end
redis.call('HSET', KEYS[1], 'cancelRequested', 1)
redis.call('PUBLISH', ARGV[1], ARGV[2])
return 1
`;

/** KEYS record, request. ARGV id, digest, record, ttl ms of the request id. Answers {'created'|'known'|'other', id}. */
const createConsolidation = `${ONCE}
local before = once(KEYS[2], ARGV[2], ARGV[1])
if before then return before end
if KEYS[2] ~= '' then redis.call('PEXPIRE', KEYS[2], ARGV[4]) end
redis.call('SET', KEYS[1], ARGV[3], 'NX')
return {'created', ARGV[1]}
`;

/** For ioredis: loaded on each connection, sent by digest. */
export const SCRIPTS = {
  submitTask: { numberOfKeys: 5, lua: submitTask },
  openRollout: { numberOfKeys: 6, lua: openRollout },
  appendEntry: { numberOfKeys: 6, lua: appendEntry },
  finishRollout: { numberOfKeys: 6, lua: finishRollout },
  failTask: { numberOfKeys: 6, lua: failTask },
  requeueTask: { numberOfKeys: 6, lua: requeueTask },
  cancelTask: { numberOfKeys: 6, lua: cancelTask },
  putMemoryWrite: { numberOfKeys: 3, lua: putMemoryWrite },
  removeMemoryWrite: { numberOfKeys: 2, lua: removeMemoryWrite },
  prepareExecution: { numberOfKeys: 4, lua: prepareExecution },
  saveExecution: { numberOfKeys: 1, lua: saveExecution },
  endExecution: { numberOfKeys: 1, lua: endExecution },
  cancelExecution: { numberOfKeys: 1, lua: cancelExecution },
  createConsolidation: { numberOfKeys: 2, lua: createConsolidation },
  ...AGENT_SETTINGS_SCRIPTS,
  ...SANDBOX_SCRIPTS,
  ...UPKEEP_SCRIPTS,
  ...ERASURE_SCRIPTS,
  ...WANTED_SKILL_SCRIPTS,
  ...TOOL_SESSION_SCRIPTS,
};

export type ScriptName = keyof typeof SCRIPTS;
