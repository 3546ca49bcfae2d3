local function isFinal(state) return state == 'succeeded' or state == 'failed' or state == 'cancelled' end
-- Ends the task: writes its fields and last events, takes it out of the outbox, and lets all its keys expire.
local function finalise(fields, events, retentionMs, member, wake)
  redis.call('ZREM', OUTBOX, member)
  redis.call('SREM', OPEN, lastPart(ROLLOUT))
  leaveLine()
  redis.call('HSET', TASK, 'endedAt', now(), 'updatedAt', now(), unpack(fields))
  redis.call('HINCRBY', TASK, 'revision', 1)
  for _, event in ipairs(events) do emit(EVENTS, event) end
  redis.call('HSET', TASK, 'finishedEvent', emit(EVENTS, '{"type":"finished"}'))
  for _, key in ipairs({TASK, ROLLOUT, JOURNAL, EVENTS}) do redis.call('PEXPIRE', key, retentionMs) end
  local request = redis.call('HGET', TASK, 'requestKey')
  if request and request ~= '' then redis.call('PEXPIRE', request, retentionMs) end
  -- The index doesn't expire, so each end drops a few of the oldest ids whose task is gone.
  local prefix = string.gsub(TASK, '[^:]*$', '')
  for _, id in ipairs(redis.call('ZRANGE', INDEX, 0, 4)) do
    if redis.call('EXISTS', prefix .. id) == 0 then redis.call('ZREM', INDEX, id) end
  end
  redis.call('PUBLISH', wake, '')
end

-- Ends the wait for the open question: stores its outcome, shifts the wall clock by the time waited, and fences the worker that asked.
local function settle(outcome)
  local asked = redis.call('HMGET', TASK, 'question', 'askedAt')
  redis.call('HSET', TASK, 'answer:' .. cjson.decode(asked[1]).key, outcome)
  redis.call('HINCRBY', ROLLOUT, 'startedAt', now() - asked[2])
  redis.call('HINCRBY', ROLLOUT, 'generation', 1)
  redis.call('HDEL', ROLLOUT, 'epoch')
end

-- Whether the rollout still has the caller's generation and epoch.
local function held(generation, epoch)
  local holder = redis.call('HMGET', ROLLOUT, 'generation', 'epoch')
  return holder[1] == generation and holder[2] == epoch
end

-- Accepts a task. KEYS[13] submits of the minute, KEYS[14] request or ''. ARGV outbox member, wake, id, digest, first event, priority,
-- distance between the tenant's tags, most unfinished tasks, most submits per minute, fields...
-- Answers {'created', id, place, unfinished tasks}, {'known'|'other', id}, or what `refusal` answers.
function scripts.submitTask()
  local before = once(KEYS[14], ARGV[4], ARGV[3])
  if before then return before end
  local no = refusal(KEYS[13], tonumber(ARGV[8]), tonumber(ARGV[9]))
  if no then
    if KEYS[14] ~= '' then redis.call('DEL', KEYS[14]) end
    return no
  end
  local at = now()
  redis.call('HSET', TASK, 'createdAt', at, 'updatedAt', at, unpack(ARGV, 10))
  redis.call('ZADD', INDEX, 0, ARGV[3])
  redis.call('ZADD', OUTBOX, at, ARGV[1])
  emit(EVENTS, ARGV[5])
  redis.call('PUBLISH', ARGV[2], '')
  return {'created', ARGV[3], enterLine(tonumber(ARGV[6]), tonumber(ARGV[7])), redis.call('SCARD', OPEN)}
end

-- Answers what the reconciler needs: {the task's state or '', its question or '', place of its job, traceparent or ''}.
function scripts.placeOfTask()
  local task = redis.call('HMGET', TASK, 'state', 'question', 'tag', 'traceparent')
  local score = redis.call('ZSCORE', WAITING, lastPart(ROLLOUT))
  return {task[1] or '', task[2] or '', placeOf(score and score % CLASS_STEP or tonumber(task[3] or '0')), task[4] or ''}
end

-- Takes the rollout for a worker. The new epoch fences every earlier worker. ARGV outbox member, wake.
-- Answers {'gone'}, {'final', state}, {'waiting'} for an answer, or {'open', generation, epoch, startedAt, now, journal as a flat list}.
function scripts.openRollout()
  local state = redis.call('HGET', TASK, 'state')
  if not state or isFinal(state) then redis.call('ZREM', OUTBOX, ARGV[1]) end
  if not state then return {'gone'} end
  if isFinal(state) then return {'final', state} end
  if state == 'input_required' then
    if cjson.decode(redis.call('HGET', TASK, 'question')).deadlineAt > tonumber(now()) then return {'waiting'} end
    settle('"expired"')
  end
  redis.call('HSETNX', ROLLOUT, 'generation', 0)
  redis.call('HSETNX', ROLLOUT, 'startedAt', now())
  local epoch = redis.call('HINCRBY', ROLLOUT, 'epoch', 1)
  if state == 'queued' then startFromLine() end
  if state ~= 'running' then emit(EVENTS, '{"type":"state","state":"running"}') end
  if epoch > 1 then emit(EVENTS, '{"type":"worker","epoch":' .. epoch .. '}') end
  redis.call('HSET', TASK, 'state', 'running', 'updatedAt', now())
  redis.call('HINCRBY', TASK, 'revision', 1)
  redis.call('PUBLISH', ARGV[2], '')
  return {'open', redis.call('HGET', ROLLOUT, 'generation'), tostring(epoch), redis.call('HGET', ROLLOUT, 'startedAt'),
    tostring(now()), redis.call('HGETALL', JOURNAL)}
end

-- Stores an entry once. A hash keeps no order, so each entry begins with its place. Answers 1 when it is new.
local function keep(key, entry) return redis.call('HSETNX', JOURNAL, key, redis.call('HLEN', JOURNAL) .. ' ' .. entry) end

-- Changes fields about learning. Each change wakes the callers that wait for the end of learning.
local function noteLearning(wake, ...)
  redis.call('HSET', TASK, 'updatedAt', now(), ...)
  redis.call('HINCRBY', TASK, 'revision', 1)
  redis.call('PUBLISH', wake, '')
end
local function closeLearning(member, wake, state, err)
  redis.call('ZREM', LEARNING, member)
  noteLearning(wake, 'learning', state, 'learningError', err)
end

-- Appends one step to the journal. ARGV generation, epoch, wake, step key, entry, usage, events...
-- The first entry under a key stays; a repeat changes nothing. Answers -1 when fenced, else 1 if a cancel was requested, 0 if not.
function scripts.appendEntry()
  local task = redis.call('HMGET', TASK, 'state', 'cancelRequested')
  if task[1] ~= 'running' or not held(ARGV[1], ARGV[2]) then return -1 end
  if keep(ARGV[4], ARGV[5]) == 1 then
    for i = 7, #ARGV do emit(EVENTS, ARGV[i]) end
    redis.call('HSET', TASK, 'usage', ARGV[6], 'updatedAt', now())
    redis.call('HINCRBY', TASK, 'revision', 1)
    redis.call('PUBLISH', ARGV[3], '')
  end
  return task[2] == '1' and 1 or 0
end

-- Asks the task's caller. ARGV generation, epoch, wake, outbox member, key, deadline in ms since 1970, question, event.
-- Answers -1 when fenced, '' when the rollout has to wait, else the outcome as JSON. A task that was asked to stop doesn't wait.
function scripts.askQuestion()
  local task = redis.call('HMGET', TASK, 'state', 'cancelRequested', 'answer:' .. ARGV[5])
  if not held(ARGV[1], ARGV[2]) then return -1 end
  if task[3] then return task[3] end
  if task[1] == 'input_required' then return '' end
  if task[1] ~= 'running' then return -1 end
  if task[2] == '1' or tonumber(ARGV[6]) <= tonumber(now()) then return '"expired"' end
  redis.call('HSET', TASK, 'state', 'input_required', 'question', ARGV[7], 'askedAt', now(), 'updatedAt', now())
  redis.call('HINCRBY', TASK, 'revision', 1)
  emit(EVENTS, '{"type":"state","state":"input_required"}')
  emit(EVENTS, ARGV[8])
  redis.call('ZADD', OUTBOX, ARGV[6], ARGV[4])
  redis.call('PUBLISH', ARGV[3], '')
  return ''
end

-- Answers the open question and puts the task back to 'queued'. ARGV outbox member, wake, key or '', answer as JSON, field of the request
-- id or '', digest. Answers {'answered', place of the job}, {'known'|'other'|'gone'}, {'key', open key}, or {'state', state} if no question is
-- open.
function scripts.answerTask()
  local task = redis.call('HMGET', TASK, 'state', 'question', ARGV[5])
  if not task[1] then return {'gone'} end
  if task[3] then return {task[3] == ARGV[6] and 'known' or 'other'} end
  if task[1] ~= 'input_required' then return {'state', task[1]} end
  local key = cjson.decode(task[2]).key
  if ARGV[3] ~= '' and ARGV[3] ~= key then return {'key', key} end
  settle(ARGV[4])
  if ARGV[5] ~= '' then redis.call('HSET', TASK, ARGV[5], ARGV[6]) end
  redis.call('HSET', TASK, 'state', 'queued', 'updatedAt', now())
  redis.call('HINCRBY', TASK, 'revision', 1)
  emit(EVENTS, '{"type":"state","state":"queued"}')
  redis.call('ZADD', OUTBOX, now(), ARGV[1])
  redis.call('PUBLISH', ARGV[2], '')
  return {'answered', reenterLine()}
end

-- Ends a rollout and its task. ARGV generation, epoch, wake, outbox member, retention ms, key and journal entry from which learning starts
-- ('' for no learning), number of fields, fields..., events... After a cancel request nothing is learned.
-- Answers -1 when fenced, 0 if this holder has ended it before, 1 if it ends now.
function scripts.finishRollout()
  if not held(ARGV[1], ARGV[2]) then return -1 end
  local state = redis.call('HGET', TASK, 'state')
  if not state then return -1 end
  if isFinal(state) then return 0 end
  if ARGV[7] ~= '' and redis.call('HGET', TASK, 'cancelRequested') ~= '1' then
    keep(ARGV[6], ARGV[7])
    redis.call('HSET', TASK, 'learning', 'pending')
    redis.call('ZADD', LEARNING, now(), ARGV[4])
  end
  local count = tonumber(ARGV[8])
  finalise({unpack(ARGV, 9, 8 + count)}, {unpack(ARGV, 9 + count)}, ARGV[5], ARGV[4], ARGV[3])
  return 1
end

-- Takes pending learning for a worker. ARGV outbox member. Answers {}, or {epoch, startedAt, now, journal as a flat list}.
function scripts.openLearning()
  if redis.call('HGET', TASK, 'learning') ~= 'pending' then
    redis.call('ZREM', LEARNING, ARGV[1])
    return {}
  end
  redis.call('HSETNX', ROLLOUT, 'learningAt', now())
  local epoch = redis.call('HINCRBY', ROLLOUT, 'learningEpoch', 1)
  return {tostring(epoch), redis.call('HGET', ROLLOUT, 'learningAt'), tostring(now()), redis.call('HGETALL', JOURNAL)}
end

-- Whether learning is pending under this epoch; '' stands for any.
local function learns(epoch)
  if redis.call('HGET', TASK, 'learning') ~= 'pending' then return false end
  return epoch == '' or redis.call('HGET', ROLLOUT, 'learningEpoch') == epoch
end

-- Appends one step of learning. ARGV outbox member, wake, epoch, step key, entry, usage. Answers -1 when fenced, else 1.
function scripts.appendLearning()
  if not learns(ARGV[3]) then return -1 end
  if keep(ARGV[4], ARGV[5]) == 1 then noteLearning(ARGV[2], 'learningUsage', ARGV[6]) end
  return 1
end

-- Ends learning. ARGV outbox member, wake, epoch or '', state, error or ''. Answers -1 when fenced, else 1.
function scripts.endLearning()
  if not learns(ARGV[3]) then return -1 end
  closeLearning(ARGV[1], ARGV[2], ARGV[4], ARGV[5])
  return 1
end

-- Makes failed learning pending again, with its wall clock reset. ARGV outbox member, wake, key of the journal entry from which learning starts.
-- Answers the state, or 'gone' if the journal is no longer kept.
function scripts.reopenLearning()
  local state = redis.call('HGET', TASK, 'learning')
  if not state or redis.call('HEXISTS', JOURNAL, ARGV[3]) == 0 then return 'gone' end
  if state == 'done' then return state end
  redis.call('HDEL', ROLLOUT, 'learningAt')
  redis.call('ZADD', LEARNING, now(), ARGV[1])
  noteLearning(ARGV[2], 'learning', 'pending', 'learningError', '')
  return 'pending'
end

-- Ends a task whose job is dead, and fences a worker that might still run it. ARGV outbox member, wake, retention ms, when the job
-- died, error. Answers 'failed', 'gone', 'final', or 'requeued' when the task was redriven after the job died.
function scripts.failTask()
  local task = redis.call('HMGET', TASK, 'state', 'requeuedAt')
  local requeuedAt = tonumber(task[2] or '') or 0
  if task[1] and not isFinal(task[1]) and requeuedAt > tonumber(ARGV[4]) then return 'requeued' end
  redis.call('ZREM', OUTBOX, ARGV[1])
  if not task[1] then return 'gone' end
  if isFinal(task[1]) then return 'final' end
  redis.call('HINCRBY', ROLLOUT, 'generation', 1)
  finalise({'state', 'failed', 'stopReason', 'error', 'error', ARGV[5]}, {'{"type":"state","state":"failed"}'}, ARGV[3], ARGV[1], ARGV[2])
  return 'failed'
end

-- Sets a task that `failTask` ended to 'queued' again, with its epoch and its wall clock reset. The journal stays.
-- ARGV outbox member, wake, task id. Answers 'queued', 'gone', or the state that forbids it.
function scripts.requeueTask()
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
  -- A reader that starts with the first event must not stop where the first run ended.
  if task[3] then redis.call('XDEL', EVENTS, task[3]) end
  emit(EVENTS, '{"type":"state","state":"queued"}')
  redis.call('ZADD', INDEX, 0, ARGV[3])
  redis.call('ZADD', OUTBOX, now(), ARGV[1])
  reenterLine()
  redis.call('PUBLISH', ARGV[2], '')
  return 'queued'
end

-- Requests a cancel. A task that is queued or waits for an answer ends at once, and so does the learning of an ended task.
-- ARGV outbox member, wake, retention ms, cancel channel. Answers 'gone', 'final', 'cancelled' or 'requested'.
function scripts.cancelTask()
  local state = redis.call('HGET', TASK, 'state')
  if not state then return 'gone' end
  if isFinal(state) then
    if learns('') then
      redis.call('HSET', TASK, 'cancelRequested', 1)
      closeLearning(ARGV[1], ARGV[2], 'failed', '{"code":"CANCELLED","message":"learning was cancelled"}')
      redis.call('PUBLISH', ARGV[4], '')
    end
    return 'final'
  end
  redis.call('HSET', TASK, 'cancelRequested', 1, 'updatedAt', now())
  if state == 'queued' or state == 'input_required' then
    redis.call('HINCRBY', ROLLOUT, 'generation', 1)
    finalise({'state', 'cancelled', 'stopReason', 'cancelled'}, {'{"type":"state","state":"cancelled"}'}, ARGV[3], ARGV[1], ARGV[2])
    return 'cancelled'
  end
  redis.call('HINCRBY', TASK, 'revision', 1)
  redis.call('PUBLISH', ARGV[4], '')
  return 'requested'
end

-- Removes a task with its rollout, journal, events and request id. A worker that still runs it is fenced, since the task is gone.
-- ARGV outbox member, wake, task id. Answers 1 if there was a task, else 0.
function scripts.eraseTask()
  local there = redis.call('EXISTS', KEYS[1])
  local request = redis.call('HGET', KEYS[1], 'requestKey')
  if request and request ~= '' then redis.call('DEL', request) end
  redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
  redis.call('SREM', OPEN, lastPart(ROLLOUT))
  leaveLine()
  redis.call('ZREM', KEYS[5], ARGV[1])
  redis.call('ZREM', KEYS[7], ARGV[1])
  redis.call('ZREM', KEYS[6], ARGV[3])
  redis.call('PUBLISH', ARGV[2], '')
  return there
end

-- Removes the journal of an ended task, and its recall events, whose summaries hold titles of records. The stream is written anew, since
-- Redis keeps the bytes of a deleted entry. KEYS journal, events. Answers 1.
function scripts.removeRecalls()
  local events, left = redis.call('XRANGE', KEYS[2], '-', '+'), redis.call('PTTL', KEYS[2])
  redis.call('DEL', KEYS[1], KEYS[2])
  for _, event in ipairs(events) do
    local told = cjson.decode(event[2][2])
    if not (told.type == 'step' and told.kind == 'recall') then redis.call('XADD', KEYS[2], event[1], unpack(event[2])) end
  end
  if left > 0 then redis.call('PEXPIRE', KEYS[2], left) end
  return 1
end
