-- The keys of the task, and the line of all waiting tasks: start-time fair queueing (Goyal, Vin and Cheng, 1996). Each waiting task has a
-- tag, an integer. The task with the lowest tag runs first. The tags of a tenant's tasks lie 100 / weight apart.
-- LINE: a hash. A tenant's field is the lowest tag that its next task may get. "/now" is the tag of the task that started last. "/base" is
-- the tag whose job has BullMQ's priority 2.
-- WAITING: a tenant's waiting rollouts, scored by priority, then tag. OPEN: a tenant's unfinished rollouts.
-- SINCE: all waiting rollouts, scored by when they began to wait. JOBS: prefix of the keys of BullMQ's queue.
local TASK, ROLLOUT, JOURNAL, EVENTS, OUTBOX, INDEX, LEARNING = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local LINE, WAITING, OPEN, SINCE, JOBS = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]

local PLACE_MAX, PLACE_STEP, CLASS_STEP = 2000000, 2 ^ 32, 2 ^ 45

local function numberIn(field) return tonumber(redis.call('HGET', LINE, field) or '0') end
local function lastPart(key) return string.match(key, '[^:]*$') end
-- BullMQ's priority of the job with this tag. A tag too far ahead gets the last place until others have started.
local function placeOf(tag) return math.max(1, math.min(PLACE_MAX, tag - numberIn('/base') + 2)) end

-- Changes the priority of a waiting job. BullMQ's score is the priority, then the order in which jobs were added.
local function moveJob(id, place)
  local score = redis.call('ZSCORE', JOBS .. 'prioritized', id)
  if not score then return end
  redis.call('ZADD', JOBS .. 'prioritized', place * PLACE_STEP + score % PLACE_STEP, id)
  redis.call('HSET', JOBS .. id, 'priority', place)
end

local function put(id, priority, tag)
  redis.call('ZADD', WAITING, (9 - priority) * CLASS_STEP + tag, id)
end

-- Puts a new task into the line. It takes the place of its tenant's first waiting task with a lower priority. That task takes the place of
-- the next task in the same way, and so on. So a priority changes only the order of one tenant's tasks.
local function enterLine(priority, cost)
  local id, tenant, at = lastPart(ROLLOUT), lastPart(WAITING), numberIn('/now')
  local tag = numberIn(tenant)
  -- Without waiting tasks, the tags of cancelled tasks are free again.
  if redis.call('ZCARD', WAITING) == 0 then tag = math.min(tag, at + cost) end
  tag = math.max(tag, at)
  redis.call('HSET', LINE, tenant, tag + cost)
  redis.call('SADD', OPEN, id)
  redis.call('ZADD', SINCE, now(), id)
  local mover = id
  while true do
    local lower = redis.call('ZRANGEBYSCORE', WAITING, (10 - priority) * CLASS_STEP, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    local taken = lower[1] and lower[2] % CLASS_STEP or tag
    put(mover, priority, taken)
    if mover ~= id then moveJob(mover, placeOf(taken)) end
    if not lower[1] then break end
    mover, priority = lower[1], 9 - math.floor(lower[2] / CLASS_STEP)
  end
  local place = placeOf(redis.call('ZSCORE', WAITING, id) % CLASS_STEP)
  -- Among equal tags, a tenant's only task comes first.
  return redis.call('SCARD', OPEN) == 1 and place - 1 or place
end

-- Puts a task that was started before back into the line, with its earlier tag.
local function reenterLine()
  local task, id = redis.call('HMGET', TASK, 'priority', 'tag'), lastPart(ROLLOUT)
  local tag = tonumber(task[2] or '') or numberIn('/now')
  redis.call('SADD', OPEN, id)
  if redis.call('ZSCORE', WAITING, id) then return end
  put(id, tonumber(task[1] or '0'), tag)
  redis.call('ZADD', SINCE, now(), id)
  return placeOf(tag)
end

local function leaveLine()
  redis.call('ZREM', WAITING, lastPart(ROLLOUT))
  redis.call('ZREM', SINCE, lastPart(ROLLOUT))
end

-- Counts places from the task that started last, so that they stay below PLACE_MAX. Jobs that have started get the first place.
local function renumber(at)
  local shift = at - numberIn('/base')
  redis.call('HSET', LINE, '/base', at)
  local jobs = redis.call('ZRANGE', JOBS .. 'prioritized', 0, -1, 'WITHSCORES')
  for i = 1, #jobs, 2 do moveJob(jobs[i], math.max(1, math.floor(jobs[i + 1] / PLACE_STEP) - shift)) end
  local started = {redis.call('LRANGE', JOBS .. 'active', 0, -1), redis.call('ZRANGE', JOBS .. 'delayed', 0, -1)}
  for _, ids in ipairs(started) do
    for _, id in ipairs(ids) do redis.call('HSET', JOBS .. id, 'priority', 1) end
  end
end

-- Takes the task out of the line because a worker starts it.
local function startFromLine()
  local score = redis.call('ZSCORE', WAITING, lastPart(ROLLOUT))
  leaveLine()
  if not score then return end
  local tag = score % CLASS_STEP
  local at = math.max(numberIn('/now'), tag)
  redis.call('HSET', TASK, 'tag', tag)
  redis.call('HSET', LINE, '/now', at)
  if at - numberIn('/base') > PLACE_MAX / 2 then renumber(at) end
end

-- Why the tenant may not submit a task now: {'tasks', unfinished tasks} or {'submits', ms until it may}. If it may, counts the submit and
-- answers nil. A limit of 0 means no limit. The minute begins with its first submit.
local function refusal(submits, tasksMax, submitsMax)
  local open = redis.call('SCARD', OPEN)
  if tasksMax > 0 and open >= tasksMax then return {'tasks', tostring(open)} end
  if submitsMax == 0 then return nil end
  if tonumber(redis.call('GET', submits) or '0') >= submitsMax then return {'submits', tostring(redis.call('PTTL', submits))} end
  if redis.call('INCR', submits) == 1 then redis.call('PEXPIRE', submits, 60000) end
  return nil
end
